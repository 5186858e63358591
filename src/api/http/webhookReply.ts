import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { Context } from 'koa'
import type { Payloads } from '../../content/payloads.ts'
import { AppError } from '../../errors.ts'
import { RawJson, StoredJson } from '../../events/rawJson.ts'
import { sendJson } from './jsonReply.ts'
import { isOfFunction, namedInConnection } from './replyHeaders.ts'

/** Limits of the headers of a function: proxies refuse more. */
const MAX_HEADERS = 100
const MAX_HEADER_BYTES = 16 << 10

/** Gives the document an origin of its own, without scripts: the API and `/docs` share the origin of the URL. */
const SANDBOX = 'sandbox'

/** The error of a webhook whose function failed. The run records it. It is not logged: the service did not fail. */
export const functionFailed = (message: string): AppError =>
  new AppError('internal_server_error', message, { data: { byFunction: true } })

/**
 * Replies with a handler's `{status, headers, body}`, or with 200 and any other result as JSON. `ownOrigin`: the request
 * came by a custom domain, so the function may set cookies and other headers for the origin.
 */
export const replyWith = (
  ctx: Context,
  result: unknown,
  {
    ownOrigin,
    payloads,
    whole = result,
  }: {
    ownOrigin: boolean
    payloads: Pick<Payloads, 'openJson'>
    /** The result if it is in the blobs; `result` then contains its fields. */
    whole?: unknown
  },
): Promise<void> | undefined => {
  const headers = isResponse(result) ? headersOf(result.headers ?? {}, ownOrigin) : []
  if (!ownOrigin) ctx.set('Content-Security-Policy', SANDBOX)
  if (!isResponse(result)) {
    ctx.status = 200
    return sendBody(ctx, whole ?? null, payloads)
  }
  ctx.status = result.status
  const { body } = result
  const sending = body === undefined ? void (ctx.body = null) : sendBody(ctx, body, payloads)
  ctx.status = result.status
  for (const [name, values] of headers) {
    if (name === 'x-content-type-options' && !ownOrigin) continue
    const isPolicy = name === 'content-security-policy' && !ownOrigin
    ctx.set(name, isPolicy ? [SANDBOX, ...[values].flat()] : values)
  }
  return sending
}

const sendBody = (
  ctx: Context,
  body: unknown,
  payloads: Pick<Payloads, 'openJson'>,
): Promise<void> | undefined => {
  ctx.type = 'application/json'
  if (body instanceof StoredJson || body instanceof RawJson) return sendJson(ctx, body, payloads)
  ctx.body = JSON.stringify(body)
  return undefined
}

const tooManyHeaders = (): AppError =>
  functionFailed(`headers: expected at most ${MAX_HEADERS} with ${MAX_HEADER_BYTES} bytes in all`)

/** The headers of a function that are sent, in lower case. Those about the connection or the origin are left out. */
const headersOf = (headers: Record<string, unknown>, ownOrigin: boolean): Map<string, string | string[]> => {
  if (headers instanceof StoredJson || headers instanceof RawJson) throw tooManyHeaders()
  const sent = new Map<string, string | string[]>()
  const entries = Object.entries(headers)
  const connection = entries.find(([name]) => name.toLowerCase() === 'connection')
  const named = namedInConnection(connection?.[1])
  let bytes = 0
  for (const [written, value] of entries) {
    const name = written.toLowerCase()
    if (named.has(name) || !isOfFunction(name, { ownOrigin })) continue
    const values = Array.isArray(value) ? value.map((one) => textOf(name, one)) : textOf(name, value)
    sent.set(name, values)
    bytes += name.length + [values].flat().join('').length
  }
  if (sent.size > MAX_HEADERS || bytes > MAX_HEADER_BYTES) throw tooManyHeaders()
  return sent
}

/** The text of a header that Node can send. Throws an error of the function for any other. */
const textOf = (name: string, value: unknown): string => {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    throw functionFailed(`headers: expected text in "${shortened(name)}", got ${typeof value}`)
  try {
    validateHeaderName(name)
    validateHeaderValue(name, String(value))
    return String(value)
  } catch {
    throw functionFailed(`headers: "${shortened(name)}" is not a header that can be sent`)
  }
}

const shortened = (name: string): string => name.slice(0, 60)

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
    (headers === undefined || (typeof headers === 'object' && headers !== null && !Array.isArray(headers)))
  )
}
