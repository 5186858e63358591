import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { Context } from 'koa'
import type { Payloads } from '../../content/payloads.ts'
import { AppError } from '../../errors.ts'
import { RawJson, StoredJson } from '../../events/rawJson.ts'
import { holding } from '../../loops/byteBudget.ts'
import type { ApiDeps } from '../deps.ts'
import { sendJson } from './jsonReply.ts'
import { isOfOrigin, isOfService, namedInConnection, REMOVED_HEADERS } from './replyHeaders.ts'

/** Limits of the headers of a function: proxies refuse more. */
const MAX_HEADERS = 100
const MAX_HEADER_BYTES = 16 << 10

/** Gives the document an origin of its own, without scripts: the API and `/docs` share the origin of the URL. */
const SANDBOX = 'sandbox'

/** The error of a webhook whose function failed. The run records it. It is not logged: the service did not fail. */
export const functionFailed = (message: string, run_id: string): AppError =>
  new AppError('internal_server_error', message, { data: { byFunction: true, run_id } })

interface Sending {
  readonly payloads: Pick<Payloads, 'openJson' | 'loadText'>
  /** The memory for values, and the organization that takes it. */
  readonly memory: Pick<ApiDeps['memory'], 'values'>
  readonly owner: string
  readonly run_id: string
}

/**
 * Replies with a handler's `{status, headers, body}`, or with 200 and any other result as JSON. `ownOrigin`: the request
 * came by a custom domain, so the function may set cookies and other headers for the origin.
 */
export const replyWith = (
  ctx: Context,
  result: unknown,
  options: Sending & {
    readonly ownOrigin: boolean
    /** The result if it is in the blobs; `result` then contains its fields. */
    readonly whole: unknown
  },
): Promise<void> | undefined => {
  const { ownOrigin, whole, run_id, payloads } = options
  const headers = isResponse(result) ? headersOf(result.headers ?? {}, { ownOrigin, run_id }) : undefined
  if (!ownOrigin) ctx.set('Content-Security-Policy', SANDBOX)
  if (!isResponse(result) || !headers) {
    ctx.status = 200
    return sendJsonBody(ctx, whole ?? null, payloads)
  }
  ctx.status = result.status
  const sending = sendBody(ctx, result, headers.get('content-type'), options)
  ctx.status = result.status
  for (const [name, values] of headers) {
    if (name === 'x-content-type-options' && !ownOrigin) continue
    const isPolicy = name === 'content-security-policy' && !ownOrigin
    ctx.set(name, isPolicy ? [SANDBOX, ...[values].flat()] : values)
  }
  return sending
}

/** Text and bytes are sent unchanged. Text in `body` is meant as it is if the function says that it is not JSON. */
const sendBody = (
  ctx: Context,
  { body, 'body-raw': raw, 'body-bytes': bytes }: Response,
  type: string | string[] | undefined,
  options: Sending,
): Promise<void> | undefined => {
  if (bytes !== undefined) return sendVerbatim(ctx, bytes, (text) => decoded(text, options.run_id), options)
  if (raw !== undefined) return sendVerbatim(ctx, raw, asItIs, options)
  if (body === undefined) return void (ctx.body = null)
  const isText =
    typeof body === 'string' || body instanceof StoredJson || (body instanceof RawJson && body.isText)
  return isText && type !== undefined && !IS_JSON.test(String(type))
    ? sendVerbatim(ctx, body, asItIs, options)
    : sendJsonBody(ctx, body, options.payloads)
}

const IS_JSON = /[/+]json\b/i

const asItIs = (text: string): string => text

/** Base64, unless a context variable in it was masked. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

const decoded = (text: string, run_id: string): Buffer => {
  if (BASE64.test(text)) return Buffer.from(text, 'base64')
  throw functionFailed('body: expected bytes without the value of a context variable', run_id)
}

const sendVerbatim = (
  ctx: Context,
  content: unknown,
  convert: (text: string) => string | Buffer,
  { payloads, memory, owner }: Sending,
): Promise<void> | undefined => {
  const send = (text: string): void => {
    const { status } = ctx
    ctx.body = convert(text)
    ctx.status = status
  }
  if (!(content instanceof StoredJson)) {
    send(textIn(content))
    return undefined
  }
  const bytes = content.to - content.from
  return holding(memory.values, { owner, bytes }, () => payloads.loadText(content)).then(send)
}

const textIn = (content: unknown): string => {
  const value = content instanceof RawJson ? content.parse() : content
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const sendJsonBody = (
  ctx: Context,
  body: unknown,
  payloads: Sending['payloads'],
): Promise<void> | undefined => {
  ctx.type = 'application/json'
  if (body instanceof StoredJson || body instanceof RawJson) return sendJson(ctx, body, payloads)
  ctx.body = JSON.stringify(body)
  return undefined
}

const tooManyHeaders = (run_id: string): AppError =>
  functionFailed(`headers: expected at most ${MAX_HEADERS} with ${MAX_HEADER_BYTES} bytes in all`, run_id)

/** The headers of a function that are sent, in lower case. Those about the connection or the origin are removed. */
const headersOf = (
  headers: Record<string, unknown>,
  { ownOrigin, run_id }: { ownOrigin: boolean; run_id: string },
): Map<string, string | string[]> => {
  if (headers instanceof StoredJson || headers instanceof RawJson) throw tooManyHeaders(run_id)
  const sent = new Map<string, string | string[]>()
  const entries = Object.entries(headers)
  const connection = entries.find(([name]) => name.toLowerCase() === 'connection')
  const named = namedInConnection(connection?.[1])
  const removed: string[] = []
  let [lines, bytes] = [0, 0]
  for (const [written, value] of entries) {
    const name = written.toLowerCase()
    if (named.has(name) || isOfService(name)) continue
    if (!ownOrigin && isOfOrigin(name)) {
      removed.push(name)
      continue
    }
    const given: readonly unknown[] = Array.isArray(value) ? value : [value]
    lines += given.length // each value is a line with the name
    if (lines > MAX_HEADERS) throw tooManyHeaders(run_id)
    const values = given.map((one) => textOf(name, one, run_id))
    bytes += values.reduce((sum, one) => sum + name.length + one.length, 0)
    sent.set(name, Array.isArray(value) ? values : values.join())
  }
  if (bytes > MAX_HEADER_BYTES) throw tooManyHeaders(run_id)
  if (removed.length > 0) sent.set(REMOVED_HEADERS, removed.join(', '))
  return sent
}

/** The text of a header that Node can send. Throws an error of the function for any other. */
const textOf = (name: string, value: unknown, run_id: string): string => {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    throw functionFailed(`headers: expected text in "${shortened(name)}", got ${typeof value}`, run_id)
  try {
    validateHeaderName(name)
    validateHeaderValue(name, String(value))
    return String(value)
  } catch {
    throw functionFailed(`headers: "${shortened(name)}" is not a header that can be sent`, run_id)
  }
}

const shortened = (name: string): string => name.slice(0, 60)

interface Response {
  readonly status: number
  readonly headers?: Record<string, unknown>
  readonly body?: unknown
  readonly 'body-raw'?: unknown
  readonly 'body-bytes'?: unknown
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
