import type { Context } from 'koa'
import type { Payloads } from '../../content/payloads.ts'
import type { Convert } from '../../content/textContent.ts'
import { AppError } from '../../errors.ts'
import { RawJson, StoredJson } from '../../events/rawJson.ts'
import { headersToSend, isReply, mistakeInBytes, type Reply } from '../../events/webhookReply.ts'
import { sendContent, sendJson } from './jsonReply.ts'
import { isOfOrigin, REMOVED_HEADERS } from './replyHeaders.ts'

/** Gives the document an origin of its own, without scripts: the API and `/docs` share the origin of the URL. */
const SANDBOX = 'sandbox'

/** The error of a webhook whose function failed. The run records it. It is not logged: the service did not fail. */
export const functionFailed = (message: string, run_id: string): AppError =>
  new AppError('internal_server_error', message, { data: { byFunction: true, run_id } })

interface Sending {
  readonly payloads: Pick<Payloads, 'openJson' | 'openText'>
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
    // A webhook with `cors` varies with the origin, whatever else the function names.
    const before = isPolicy ? SANDBOX : name === 'vary' ? ctx.response.get('Vary') : ''
    ctx.set(name, before === '' ? values : [before, ...[values].flat()])
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
  const { payloads, run_id } = options
  if (bytes !== undefined) return sendVerbatim(ctx, bytes, bytesOf(run_id), payloads)
  if (raw !== undefined) return sendVerbatim(ctx, raw, TEXT, payloads)
  if (body === undefined) return void (ctx.body = null)
  const isText =
    typeof body === 'string' || body instanceof StoredJson || (body instanceof RawJson && body.isText)
  return isText && type !== undefined && !IS_JSON.test(String(type))
    ? sendVerbatim(ctx, body, TEXT, payloads)
    : sendJsonBody(ctx, body, payloads)
}

const IS_JSON = /[/+]json\b/i

/** How a text is sent: a small one at once, a large one while it is read. */
interface Form {
  readonly whole: (text: string) => string | Buffer
  readonly parts: Convert
}

const TEXT: Form = {
  whole: (text) => text,
  parts: async function* (texts) {
    for await (const text of texts) yield Buffer.from(text)
  },
}

/** Characters that are whole bytes of base64. */
const GROUP = 4

/** Bytes, which are base64 in a result. */
const bytesOf = (run_id: string): Form => {
  const decoded = (text: string): Buffer => {
    const mistake = mistakeInBytes(text)
    if (mistake !== undefined) throw functionFailed(mistake, run_id)
    return Buffer.from(text, 'base64')
  }
  return {
    whole: decoded,
    parts: async function* (texts) {
      let rest = ''
      for await (const text of texts) {
        rest += text
        const end = rest.length - GROUP - (rest.length % GROUP) // the last group may be padded
        if (end <= 0) continue
        // Padding before the end is a mistake, which one more character makes visible.
        const mistake = mistakeInBytes(`${rest.slice(0, end)}A`)
        if (mistake !== undefined) throw functionFailed(mistake, run_id)
        yield Buffer.from(rest.slice(0, end), 'base64')
        rest = rest.slice(end)
      }
      if (rest !== '') yield decoded(rest)
    },
  }
}

const sendVerbatim = (
  ctx: Context,
  content: unknown,
  form: Form,
  payloads: Sending['payloads'],
): Promise<void> | undefined => {
  if (content instanceof StoredJson) return sendStored(ctx, content, form, payloads)
  const { status } = ctx
  ctx.body = form.whole(textIn(content))
  ctx.status = status
  return undefined
}

/** The content is read only as fast as the client receives it. */
const sendStored = async (
  ctx: Context,
  stored: StoredJson,
  { parts }: Form,
  payloads: Sending['payloads'],
): Promise<void> => {
  const content = await payloads.openText(stored, parts)
  if (parts === TEXT.parts && ctx.type === '') ctx.type = IS_MARKUP.test(content.start) ? 'html' : 'text'
  sendContent(ctx, content)
}

/** Koa gives a small text without a type the same one. */
const IS_MARKUP = /^\s*</

const textIn = (content: unknown): string => {
  const value = content instanceof RawJson ? content.parse() : content
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const sendJsonBody = (
  ctx: Context,
  body: unknown,
  payloads: Sending['payloads'],
): Promise<void> | undefined => {
  if (body instanceof StoredJson || body instanceof RawJson) return sendJson(ctx, body, payloads)
  ctx.type = 'application/json'
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
