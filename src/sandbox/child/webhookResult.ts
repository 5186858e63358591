import { isUtf8 } from 'node:buffer'
import { mistakeInReply } from '../../events/webhookReply.ts'
import { MAX_FRAME } from '../frames.ts'

/** Bytes of a body that is not UTF-8: as base64, they fit into a result. */
const MAX_BODY = MAX_FRAME / 2

/** The fields of a reply (SPEC.md, Webhook response). An object with other fields is a plain value. */
const FIELDS = new Set(['status', 'headers', 'body', 'body-raw', 'body-bytes'])

type Fields = Readonly<Record<string, unknown>>
type Headers = Record<string, unknown>

/**
 * Converts what the function of a webhook returned to JSON that the service sends unchanged: `body-raw` is text,
 * `body-bytes` is base64. A promise only for a `Response`. Throws for a reply with an invalid status, or with headers that
 * cannot be sent: its run must not have succeeded, because its caller gets an error.
 */
export const webhookResult = (value: unknown): unknown => {
  const result = converted(value)
  return result instanceof Promise ? result.then(sendable) : sendable(result)
}

const sendable = (result: unknown): unknown => {
  const { status, headers } = (result ?? {}) as { readonly status?: unknown; readonly headers?: unknown }
  const mistake = mistakeInReply({ status, headers: inJson(headers) })
  if (mistake !== undefined) throw new TypeError(mistake)
  return result
}

/** As JSON has it: `undefined` is left out, and a `URL` is text. The result as a whole says what JSON cannot have. */
const inJson = (value: unknown): unknown => {
  try {
    return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
  } catch {
    return undefined
  }
}

const converted = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value
  if (isBytes(value)) return { status: 200, ...withBytes({}, bytesOf(value)) }
  if (isResponse(value)) return ofResponse(value)
  const reply = value as Fields
  if (!Object.keys(reply).every((key) => FIELDS.has(key)) || !isReply(reply)) return value
  demandStatus(reply['status'])
  const headers = headersOf(reply['headers'])
  const { body } = reply
  if (!isBytes(body)) return { ...reply, ...(headers && { headers }) }
  const { body: _, ...rest } = reply
  return { ...rest, ...withBytes(headers ?? {}, bytesOf(body)) }
}

/** `{ status: 'shipped' }` is a plain value; a status that is a number, or is beside other fields, is meant as one. */
const isReply = (reply: Fields): boolean => {
  if (!('status' in reply)) return false
  const { status } = reply
  const isNumeric = typeof status === 'number' || (typeof status === 'string' && /^\d+$/.test(status))
  return isNumeric || Object.keys(reply).length > 1
}

const demandStatus = (status: unknown): void => {
  if (Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599) return
  const got = typeof status === 'number' ? status : (JSON.stringify(status)?.slice(0, 80) ?? typeof status)
  throw new TypeError(`Expected the status of a reply to be a whole number from 200 to 599, got ${got}`)
}

/** The headers as a plain object, also of a `Headers` or a list of pairs; undefined if there are none. */
const headersOf = (headers: unknown): Headers | undefined => {
  if (headers === undefined) return undefined
  if (typeof headers !== 'object' || headers === null)
    throw new TypeError(`Expected the headers of a reply to be an object, got ${typeof headers}`)
  if (!(Symbol.iterator in headers)) return { ...headers }
  const found: Headers = {}
  for (const [name, value] of headers as Iterable<readonly [string, unknown]>) {
    const before = found[name]
    found[name] = before === undefined ? value : [before, value].flat() // only `set-cookie` occurs twice
  }
  return found
}

interface ResponseLike {
  readonly status: number
  readonly headers: Iterable<readonly [string, string]>
  readonly body: AsyncIterable<Uint8Array> | null
  readonly bodyUsed: boolean
  /** Not empty on a response of `fetch`. */
  readonly url?: string
}

/** Recognizes a `Response` of any library. Reading the global `Response` would load undici for every webhook. */
const isResponse = (value: object): value is ResponseLike =>
  'arrayBuffer' in value && 'status' in value && 'headers' in value && 'bodyUsed' in value

const ofResponse = async (response: ResponseLike): Promise<unknown> => {
  const { status } = response
  demandStatus(status)
  const headers = headersOf(response.headers) ?? {}
  if (response.url) delete headers['content-encoding'] // `fetch` has decoded the body
  if (response.bodyUsed) throw new TypeError('Expected a Response whose body was not read')
  if (response.body === null) return { status, headers }
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body) {
    size += chunk.length
    if (size > MAX_BODY) throw tooLarge(size)
    chunks.push(chunk)
  }
  const bytes = Buffer.concat(chunks, size)
  return isUtf8(bytes)
    ? { status, headers: withType(headers), 'body-raw': bytes.toString('utf8') }
    : { status, ...withBytes(headers, bytes) }
}

const isBytes = (value: unknown): value is ArrayBuffer | ArrayBufferView =>
  value instanceof ArrayBuffer || ArrayBuffer.isView(value)

const bytesOf = (value: ArrayBuffer | ArrayBufferView): Buffer =>
  value instanceof ArrayBuffer
    ? Buffer.from(value)
    : Buffer.from(value.buffer, value.byteOffset, value.byteLength)

const withBytes = (headers: Headers, bytes: Buffer): Fields => {
  if (bytes.length > MAX_BODY) throw tooLarge(bytes.length)
  return { headers: withType(headers), 'body-bytes': bytes.toString('base64') }
}

const withType = (headers: Headers): Headers =>
  Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
    ? headers
    : { ...headers, 'content-type': 'application/octet-stream' }

const tooLarge = (size: number): RangeError =>
  new RangeError(`Expected a reply of at most ${MAX_BODY} bytes, got ${size} or more`)
