import type { Context } from 'koa'
import type { Payloads } from '../../content/payloads.ts'
import { AppError } from '../../errors.ts'
import { RawJson, StoredJson } from '../../events/rawJson.ts'
import { headersToSend, isReply, mistakeInBytes, type Reply } from '../../events/webhookReply.ts'
import { holding } from '../../loops/byteBudget.ts'
import type { ApiDeps } from '../deps.ts'
import { sendJson } from './jsonReply.ts'
import { isOfOrigin, REMOVED_HEADERS } from './replyHeaders.ts'

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
  const headers = isReply(result) ? headersOf(result, { ownOrigin, run_id }) : undefined
  if (!ownOrigin) ctx.set('Content-Security-Policy', SANDBOX)
  if (!isReply(result) || !headers) {
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
  { body, 'body-raw': raw, 'body-bytes': bytes }: Reply,
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

const decoded = (text: string, run_id: string): Buffer => {
  const mistake = mistakeInBytes(text)
  if (mistake !== undefined) throw functionFailed(mistake, run_id)
  return Buffer.from(text, 'base64')
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

/** The headers of a function that are sent. Those about the origin are removed, unless it is the function's own. */
const headersOf = (
  { headers }: Reply,
  { ownOrigin, run_id }: { ownOrigin: boolean; run_id: string },
): Map<string, string | string[]> => {
  const given = headersToSend(headers)
  if (typeof given === 'string') throw functionFailed(given, run_id)
  if (ownOrigin) return new Map(given)
  const sent = new Map([...given].filter(([name]) => !isOfOrigin(name)))
  const removed = [...given.keys()].filter(isOfOrigin)
  if (removed.length > 0) sent.set(REMOVED_HEADERS, removed.join(', '))
  return sent
}
