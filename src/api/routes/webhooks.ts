import { authorizeWebhook } from '../../commands/webhooks/authorizeWebhook.ts'
import { callWebhook } from '../../commands/webhooks/callWebhook.ts'
import { findWebhook } from '../../commands/webhooks/findWebhook.ts'
import { newId } from '../../ids.ts'
import { bearerOf } from '../http/bearer.ts'
import { functionFailed, replyWith } from '../http/webhookReply.ts'
import { readWebhookRequest } from '../http/webhookRequest.ts'
import { own, type PublicAsk, type PublicRoute, publicRoute } from '../route.ts'

const call = async ({ ctx, params, deps, request_id }: PublicAsk): Promise<void> => {
  const { org, env: name, rest } = params
  const path = [org, name, rest].filter((part) => part !== undefined).join('/')
  const endpoint = await findWebhook(deps, { method: ctx.method, hostname: ctx.hostname, path })
  const { env, webhook } = endpoint
  const bearer = bearerOf(ctx.headers.authorization)
  const auth =
    webhook.auth === 'required' &&
    (await authorizeWebhook(deps, endpoint, await deps.authenticator.authenticate(bearer)))
  await deps.orgRates.take(ctx, env.env_id)
  const ending = await callWebhook(
    deps,
    {
      endpoint,
      readRequest: async () => ({ ...(await readWebhookRequest(ctx, webhook)), ...(auth && { auth }) }),
      defaultTimeoutMs: deps.webhookTimeoutMs,
    },
    { cause: { env_id: env.env_id, correlation_id: request_id }, newId },
  )
  if (ending.status === 'failed') throw functionFailed(ending.message)
  replyWith(ctx, ending.result)
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
      rawBody: '*/*',
      errors: [
        'not_found',
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
