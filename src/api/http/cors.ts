import type { Context } from 'koa'
import type { Credential } from '../../access/credential.ts'
import { AppError } from '../../errors.ts'
import { type CorsOrigins, isAllowedOrigin, parseCorsOrigins } from '../../ports/corsOrigins.ts'
import { POSITION_HEADER } from '../streams/sse.ts'

/** The operator's API is for no page, and each webhook has origins of its own. */
const OPEN_TO_PAGES = /^\/(?:v1\/|mcp$)/

/** A browser sends no preflight again for this long; Chromium allows no more. */
const MAX_AGE_SECONDS = 7200

const METHODS = 'GET, POST, PUT, PATCH, DELETE'

/** The headers of a request that the service reads. */
const READ_HEADERS = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'Last-Event-ID',
  'Content-Range',
  'If-Match',
  'If-None-Match',
  'If-Range',
  'If-Unmodified-Since',
  'Mcp-Protocol-Version',
  'Mcp-Session-Id',
  'Range',
  'traceparent',
].join(', ')

/** The headers of a reply that a page may read, apart from those that every page may read. */
const SENT_HEADERS = [
  'X-Request-Id',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Link',
  'Location',
  POSITION_HEADER,
  'Idempotency-Replayed',
  'ETag',
  'Accept-Ranges',
  'Content-Disposition',
  'Content-Range',
  'Mcp-Session-Id',
  'X-Build-Exists',
].join(', ')

/**
 * Sets the headers that let a page of an allowed origin read the reply, also if it becomes an error or a stream. Without
 * `SVC_CORS_ORIGINS`, browsers keep every page from the API.
 */
export const openToPages = (ctx: Context, origins: CorsOrigins | null): void => {
  if (!origins || !OPEN_TO_PAGES.test(ctx.path)) return
  ctx.set('Vary', 'Origin')
  const { origin } = ctx.headers
  if (origin === undefined || !isAllowedOrigin(origins, origin)) return
  ctx.state.isOfPage = !isSameOrigin(ctx, origin)
  ctx.set('Access-Control-Allow-Origin', origin)
  ctx.set('Access-Control-Expose-Headers', SENT_HEADERS)
}

/** A page of the service itself, such as `/docs`. A proxy may have changed the `Host`. */
const isSameOrigin = ({ headers }: Context, origin: string): boolean =>
  headers['sec-fetch-site'] === 'same-origin' || origin.replace(/^https?:\/\//, '') === headers.host

/** Replies to the question of a browser whether a page may send a request. Returns false for any other request. */
export const answeredPreflight = (ctx: Context): boolean => {
  const isPreflight =
    ctx.method === 'OPTIONS' && ctx.headers['access-control-request-method'] !== undefined && isAllowed(ctx)
  if (!isPreflight) return false
  ctx.set('Access-Control-Allow-Methods', METHODS)
  ctx.set('Access-Control-Allow-Headers', READ_HEADERS)
  ctx.set('Access-Control-Max-Age', String(MAX_AGE_SECONDS))
  ctx.status = 204
  return true
}

/** The headers of a webhook's reply that a page may read, unless the function names others. */
const SENT_BY_WEBHOOKS = ['X-Request-Id', 'Retry-After', 'Idempotency-Replayed', 'Removed-Headers'].join(', ')

/** Sets the headers that let a page of an allowed origin read the reply of a webhook. Returns whether it may. */
export const openWebhookToPages = (ctx: Context, cors: readonly string[] | undefined): boolean => {
  if (!cors) return false
  ctx.set('Vary', 'Origin')
  const { origin } = ctx.headers
  if (origin === undefined || !isAllowedBy(cors, origin)) return false
  ctx.set('Access-Control-Allow-Origin', origin)
  ctx.set('Access-Control-Expose-Headers', SENT_BY_WEBHOOKS)
  return true
}

const isAllowedBy = (cors: readonly string[], origin: string): boolean => {
  if (cors.includes('*')) return true
  const origins = parseCorsOrigins(cors.join(','))
  return origins !== undefined && isAllowedOrigin(origins, origin)
}

/** Replies to the question of a browser whether a page may send a request of `method` to a webhook. */
export const answerWebhookPreflight = (
  ctx: Context,
  cors: readonly string[] | undefined,
  method: string,
): void => {
  ctx.status = 204
  if (!openWebhookToPages(ctx, cors)) return
  ctx.set('Access-Control-Allow-Methods', method)
  ctx.set('Access-Control-Allow-Headers', ctx.get('Access-Control-Request-Headers')) // the function reads any header
  ctx.set('Access-Control-Max-Age', String(MAX_AGE_SECONDS))
}

const isAllowed = ({ res }: Context): boolean => res.hasHeader('Access-Control-Allow-Origin')

/** Throws if a page of another origin sends a key: everyone who opens the page could read it. */
export const demandSession = ({ state }: Context, { kind }: Pick<Credential, 'kind'>): void => {
  if (kind === 'session' || state.isOfPage !== true) return
  const got = kind === 'api-key' ? 'an API key' : 'a service key'
  throw new AppError(
    'forbidden',
    `Authorization: expected a session from a browser, got ${got}. Keys must stay on a server: ` +
      'create a session there with POST /v1/sessions and give its token to the page',
  )
}
