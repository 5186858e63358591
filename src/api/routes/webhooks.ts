import { isUtf8 } from 'node:buffer'
import type { Context } from 'koa'
import { AppError } from '../../errors.ts'
import { payloadFields, payloadOf } from '../../events/payload.ts'
import type { WebhookRequest } from '../../ports/runtime.ts'
import { newId } from '../../ids.ts'
import { sealRequest } from '../../secrets/webhookRequests.ts'
import { sameText } from '../../access/tokens.ts'
import type { Deployed, Directory, DirectoryEnv } from '../../projections/directory.ts'
import { placeOf } from '../../commands/dispatch.ts'
import type { ApiDeps } from '../deps.ts'
import { bearerOf } from '../http/bearer.ts'
import { readBody } from '../http/body.ts'
import { unsealMetadata } from '../../secrets/serviceKeyMetadata.ts'
import { requestRun } from '../../commands/requestRun.ts'
import { type Ask, own, type Route, route } from '../route.ts'

/** Bytes of body that senders may deliver; GitHub's own cap. */
const MAX_BODY_BYTES = 25 << 20

const notFound = () => new AppError('not_found', 'No webhook here')

/** An endpoint that was called, with the environment and the function it belongs to. */
interface Found {
  readonly env: DirectoryEnv
  readonly deployed: Deployed
}

/** The function that the address names and proves to know; undefined whatever is wrong. */
const find = ({ ctx, params, deps: { views, keyring } }: Ask): Found | undefined => {
  const { env, rest } = addressOf(ctx, params, views.directory)
  if (!env) return undefined
  const { env_id } = env
  const { method } = ctx
  const [service = '', ...segments] = rest.split('/')
  const token = segments.pop() ?? ''
  const path = `/${segments.join('/')}`
  const expected = keyring.webhookToken(env_id, { method, service, path })
  const deployed = views.directory.webhookAt(env_id, method, service, path)
  return sameText(token, expected) && deployed ? { env, deployed } : undefined
}

/** Whose endpoint is called, and its `{service}/{path}/{token}`: by a custom domain all that comes after `/webhook/`. */
const addressOf = (
  { hostname }: Context,
  { org, env, rest = '' }: Record<string, string>,
  directory: Directory,
): { env: DirectoryEnv | undefined; rest: string } => {
  const own = directory.envOfDomain(hostname.toLowerCase().replace(/\.$/, ''))
  if (own) return { env: own, rest: [org, env, rest].filter((part) => part !== undefined).join('/') }
  return { env: directory.envAt(org ?? '', env ?? ''), rest }
}

/** The request as SPEC.md gives it to the handler. The token is only in `original-url`. */
const requestOf = async (
  ctx: Context,
  { service, path }: { service: string; path: string },
): Promise<WebhookRequest> => {
  const bytes = await readBody(ctx.req, MAX_BODY_BYTES)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(ctx.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  const ip = (ctx.get('x-forwarded-for').split(',')[0] ?? '').trim() || ctx.get('x-real-ip')
  const text = bytes.toString('utf8')
  return {
    method: ctx.method,
    url: `/webhook/${service}${path}`,
    'original-url': ctx.href,
    headers,
    query: { ...ctx.query } as Record<string, string | string[]>,
    ...(bytes.length > 0 && {
      body: parsedBody(text, ctx.get('content-type')),
      'body-raw': text,
      ...(!isUtf8(bytes) && { 'body-bytes': bytes.toString('base64') }),
    }),
    ...(ip !== '' && { ip }),
  }
}

/** JSON whatever the sender called it, because many call it nothing or a form; then a form, then text. */
const parsedBody = (text: string, contentType: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return contentType.includes('application/x-www-form-urlencoded')
      ? Object.fromEntries(new URLSearchParams(text))
      : text
  }
}

/** One that was just deployed may be new to this node (I2); a redeployed one may run as it was for some milliseconds. */
const findSurely = async (ask: Ask): Promise<Found | undefined> => {
  await ask.deps.views.settled('builds')
  return find(ask)
}

const call = async (ask: Ask): Promise<void> => {
  const { ctx, deps, request_id } = ask
  const { env, deployed } = find(ask) ?? (await findSurely(ask)) ?? {}
  const webhook = deployed?.fn.webhook
  if (!env || !webhook) throw notFound()
  const auth = webhook.auth === 'required' ? await authOf(ctx, deps, env.env_id, webhook.service) : undefined
  await deps.orgRates.take(ctx, env.env_id)
  await deps.quotas.checkRun(env.env_id)
  const request = { ...(await requestOf(ctx, webhook)), ...(auth && { auth }) }
  const { env_id } = env
  const { value: open, sealed } = await sealRequest(request, {
    keyring: deps.keyring,
    env_id,
    secretHeaders: deployed.fn.secret_headers ?? [],
  })
  const payload = await deps.payloads.keep(open)
  const timeout = deployed.fn.timeout ?? deps.webhookTimeoutMs
  const { ending } = await requestRun(
    deps,
    { run_type: 'call', ...placeOf(deployed), timeout },
    { kind: 'webhook', ...payloadFields('value', payload), sealed },
    { env_id: env.env_id, request_id, timeoutMs: timeout + 10_000, newId },
  )
  if (!ending) throw new AppError('unavailable', 'The run did not end in time')
  if (ending.type === 'RunFailed') throw failed(ending.error.message)
  if (ending.type === 'RunCancelled') throw failed('The run was cancelled')
  reply(ctx, await deps.payloads.load(payloadOf('result', ending)))
}

/** The function is at fault, not the service: its run tells, the service's log need not. */
const failed = (message: string): AppError =>
  new AppError('internal_server_error', message, { data: { byFunction: true } })

/** SPEC.md, Authentication, rule 9: a credential of this environment that may execute the service's webhooks. */
const authOf = async (
  ctx: Context,
  { authenticator, keyring }: ApiDeps,
  env_id: string,
  service: string,
): Promise<Record<string, unknown>> => {
  const credential = await authenticator.authenticate(bearerOf(ctx.headers.authorization))
  if (credential.env_id !== env_id) throw notFound()
  if (!credential.permissions.allows('webhook', 'execute', service)) {
    throw new AppError('forbidden', `The credential lacks the permission webhook:${service} execute`)
  }
  const { kind, id, metadata } = credential
  if (kind !== 'service-key') return { type: kind }
  return {
    type: kind,
    metadata: await unsealMetadata(keyring, { env_id, service_key_id: id }, metadata),
  }
}

/** A handler's `{status, headers, body}`, or 200 with whatever else it returned as JSON. */
const reply = (ctx: Context, result: unknown): void => {
  if (!isResponse(result)) {
    ctx.status = 200
    ctx.type = 'application/json'
    ctx.body = JSON.stringify(result ?? null)
    return
  }
  ctx.status = result.status
  const { body } = result
  if (body !== undefined) {
    ctx.type = 'application/json'
    ctx.body = JSON.stringify(body)
  } else ctx.body = null
  ctx.status = result.status
  for (const [name, value] of Object.entries(result.headers ?? {})) setHeader(ctx, name, value)
}

const setHeader = (ctx: Context, name: string, value: unknown): void => {
  if (/^(content-length|transfer-encoding|connection|x-request-id)$/i.test(name)) return // ours to say
  try {
    ctx.set(name, Array.isArray(value) ? value.map(String) : String(value))
  } catch {
    throw failed(`headers: "${name.slice(0, 60)}" is not a header that can be sent`)
  }
}

interface Response {
  readonly status: number
  readonly headers?: Record<string, unknown>
  readonly body?: unknown
}

const isResponse = (result: unknown): result is Response => {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return false
  const { status, headers } = result as { status?: unknown; headers?: unknown }
  return (
    Number.isInteger(status) &&
    (status as number) >= 200 &&
    (status as number) <= 599 &&
    (headers === undefined || (typeof headers === 'object' && headers !== null))
  )
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const PATHS = [
  {
    path: '/webhook/:org/:env/*rest',
    summary: 'Call a webhook endpoint',
    description: 'Runs the function and answers with what it returns. `rest` is `{service}/{path}/{token}`.',
  },
  {
    path: '/webhook/*rest',
    summary: 'Call a webhook endpoint by a custom domain',
    description: 'The same where the host of the URL is an active custom domain of the environment.',
  },
] as const

export const webhookRoutes: Route[] = PATHS.flatMap((place) =>
  METHODS.map((method) =>
    route({
      method,
      ...place,
      tag: 'Webhooks',
      needs: null,
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
      reply: { kind: 'bare', description: 'What the function returned' },
      handle: async (ask) => {
        await call(ask)
        return own
      },
    }),
  ),
)
