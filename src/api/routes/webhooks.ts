import type { Context } from 'koa'
import { authorizeWebhook } from '../../commands/webhooks/authorizeWebhook.ts'
import { callWebhook, type WebhookEnding } from '../../commands/webhooks/callWebhook.ts'
import { findWebhook, noWebhook, type WebhookEndpoint } from '../../commands/webhooks/findWebhook.ts'
import { fromAddress } from '../../events/actor.ts'
import { StoredJson } from '../../events/rawJson.ts'
import { newId } from '../../ids.ts'
import { authenticated } from '../http/authenticated.ts'
import { answerWebhookPreflight, openWebhookToPages } from '../http/cors.ts'
import { clientIp } from '../http/clientIp.ts'
import { holding } from '../../loops/byteBudget.ts'
import type { ApiDeps } from '../deps.ts'
import { STREAMED_BYTES } from '../http/memory.ts'
import { tracedBy } from '../http/serveRoute.ts'
import { functionFailed, replyWith } from '../http/webhookReply.ts'
import { webhookHead } from '../http/webhookHead.ts'
import { largeBodyOf, readWebhookRequest } from '../http/webhookRequest.ts'
import { own, type PublicAsk, type PublicRoute, publicRoute } from '../route.ts'

const call = async ({ ctx, deps, request_id }: PublicAsk): Promise<void> => {
  const endpoint = await endpointAt(ctx, ctx.method, deps)
  const { env, webhook } = endpoint
  openWebhookToPages(ctx, webhook.cors)
  const credential = webhook.auth === 'required' ? await authenticated(ctx, deps) : null
  // The owner of the credential, because a stranger must not use up the rate of the webhook's organization.
  await deps.orgRates.take(ctx, credential?.env_id ?? env.env_id)
  const auth = credential && (await authorizeWebhook(deps, endpoint, credential))
  const owner = env.org_id
  const largeBody = largeBodyOf(ctx, () => deps.memory.webhooks.take(owner, STREAMED_BYTES))
  const ending = await callWebhook(
    deps,
    {
      endpoint,
      readRequest: async () => ({
        ...(await readWebhookRequest(ctx, webhookHead(ctx, endpoint, deps))),
        ...(auth && { auth }),
      }),
      largeBody,
      defaultTimeoutMs: deps.webhookTimeoutMs,
    },
    {
      cause: {
        env_id: env.env_id,
        correlation_id: request_id,
        ...(credential ? { actor: credential.id, actor_type: credential.kind } : { actor_type: 'client' }),
        ...fromAddress(clientIp(ctx.req, deps)),
        ...tracedBy(ctx),
      },
      newId,
    },
  )
  const { run_id } = ending
  if (ending.status === 'failed') throw functionFailed(reasonOf(ending), run_id)
  const result =
    ending.result instanceof StoredJson ? await fieldsOf(ending.result, owner, deps) : ending.result
  if (ending.isRepeated) ctx.set('Idempotency-Replayed', 'true')
  const { payloads } = deps
  const ownOrigin = endpoint.domain !== null
  const sending = replyWith(ctx, result, { ownOrigin, payloads, run_id, whole: ending.result })
  if (sending) await sending
}

/** Finds the endpoint for a request of `method`. One of GET also serves HEAD. */
const endpointAt = (ctx: Context, method: string, deps: ApiDeps): Promise<WebhookEndpoint> => {
  const address = {
    method: method === 'HEAD' ? 'GET' : method,
    hostname: ctx.hostname,
    path: pathIn(ctx.path),
  }
  return findWebhook(deps, address, () => deps.guesses.count(clientIp(ctx.req, deps), ctx.state.request_id))
}

/** The message of a thrown value can contain secrets, so only the developer of a live build gets it in the reply. */
const reasonOf = ({ code, message, isLive, run_id }: Extract<WebhookEnding, { status: 'failed' }>): string =>
  isLive || BY_SERVICE.has(code)
    ? message
    : `The function failed with ${code}: its error is in the run ${run_id}`

/** Codes whose message is that of the service, not of the function. */
const BY_SERVICE: ReadonlySet<string> = new Set(['timeout', 'cancelled', 'unresponsive'])

/** Reads status and headers of a large result; its body remains in the blobs until it is sent. */
const fieldsOf = (
  result: StoredJson,
  owner: string,
  { memory, payloads }: Pick<ApiDeps, 'memory' | 'payloads'>,
): Promise<unknown> => holding(memory.values, { owner, bytes: result.to }, () => payloads.fieldsOf(result))

/** The path after `/webhook/`, decoded. An encoded slash is not a separator: each endpoint has one path. */
const pathIn = (path: string): string => {
  const segments = path.split('/').slice(2).map(decoded)
  if (segments.some((segment) => segment === null || segment.includes('/'))) throw noWebhook()
  return segments.join('/')
}

const decoded = (segment: string): string | null => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const PATHS = [
  {
    path: '/webhook/:org/:env/*rest',
    operation: 'callWebhook',
    summary: 'Call a webhook endpoint',
    description: 'Runs the function and replies with its result. `rest` is `{service}/{path}/{token}`.',
  },
  {
    path: '/webhook/*rest',
    operation: 'callDomainWebhook',
    summary: 'Call a webhook endpoint by a custom domain',
    description:
      'Runs the function and replies with its result. The host of the URL is an active custom domain of the environment.',
  },
] as const

const capitalized = (method: string): string => method.charAt(0) + method.slice(1).toLowerCase()

export const webhookRoutes: readonly PublicRoute[] = PATHS.flatMap(({ operation, ...place }) =>
  METHODS.map((method) =>
    publicRoute({
      method,
      ...place,
      operationId: `${operation}By${capitalized(method)}`,
      tag: 'Webhooks',
      anyQuery: true,
      rawBody: 'application/octet-stream',
      errors: [
        'unauthorized',
        'forbidden',
        'not_found',
        'misdirected_request',
        'quota_exceeded',
        'rate_limit_exceeded',
        'payload_too_large',
        'internal_server_error',
        'unavailable',
      ],
      reply: { kind: 'bare', description: 'The reply of the function' },
      handle: async (ask) => {
        await call(ask)
        return own
      },
    }),
  ),
)

/** Serves `OPTIONS` of webhooks, which are no operations of the API: browsers send them by themselves. */
export const webhookPreflights = (deps: ApiDeps) =>
  PATHS.map(({ path }) => ({
    method: 'OPTIONS',
    path,
    serve: async (ctx: Context): Promise<void> => {
      const method = ctx.get('Access-Control-Request-Method')
      if (method === '') {
        ctx.set('Allow', [...METHODS, 'HEAD'].join(', ')) // HEAD is served by the GET of a webhook
        ctx.status = 204
        return
      }
      const { webhook } = await endpointAt(ctx, method, deps)
      answerWebhookPreflight(ctx, webhook.cors, method)
    },
  }))
