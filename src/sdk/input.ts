import { isUtf8 } from 'node:buffer'
import { parse as parseForm } from 'node:querystring'

/** The input of an event handler. A scheduled function receives an event of type `svc:schedule`. */
export interface Event<Data = unknown> {
  readonly type: string
  readonly data: Data
  readonly id: string
  readonly timestamp: string
  readonly source: string
}

/** The event of a scheduled run. */
export type Tick = Event<{ readonly cron: string; readonly scheduled_time: string }>

/** The input of a webhook handler. */
export interface WebhookRequest<Body = unknown> {
  readonly method: string
  /** Path without the token: safe to log. */
  readonly url: string
  /** The URL of the request with its secret token: never log it. */
  readonly 'original-url'?: string
  readonly originalUrl?: string
  /** Names are in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | readonly string[]>>
  /** The parameters of the path, such as `id` of `/orders/:id`; absent if the path has none. */
  readonly params?: Readonly<Record<string, string>>
  readonly body?: Body
  /** The body as text, to verify signatures. Bytes that are not UTF-8 are replaced. */
  readonly 'body-raw'?: string
  readonly bodyRaw?: string
  /** The exact bytes of the body, present only if it is not UTF-8. */
  readonly 'body-bytes'?: Uint8Array
  readonly bodyBytes?: Uint8Array
  readonly ip?: string
  readonly auth?: Readonly<Record<string, unknown>>
}

/**
 * The reply of a webhook handler, which may also return a `Response`, or bytes. Any other returned value is sent as JSON with
 * status 200.
 */
export interface WebhookResponse {
  /** 200 to 599. */
  readonly status: number
  readonly headers?: Readonly<Record<string, string | number | boolean | readonly string[]>>
  /** Bytes are sent unchanged, and so is text whose `content-type` is not JSON. Anything else is sent as JSON. */
  readonly body?: unknown
}

const ALIASES = { originalUrl: 'original-url', bodyRaw: 'body-raw', bodyBytes: 'body-bytes' } as const

/** A parsed body may need this much memory; a body that would need more remains text. */
const MAX_PARSED_BYTES = 64 << 20
/** Memory of one parsed list, object or field of a form. */
const PARSED_PART_BYTES = 64
/** A body over this size is parsed when the function reads it for the first time. */
const LAZY_BYTES = 1 << 20

/**
 * Parses JSON of any content type, because many senders declare none or a form; otherwise a form, otherwise text. A repeated
 * field of a form is a list, as in `query`.
 */
export const bodyOf = (text: string, contentType = ''): unknown => {
  try {
    if (fits(text, /[{[]/g)) return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
  } catch {}
  return IS_FORM.test(contentType) && fits(text, /&/g) ? { ...parseForm(text, '&', '=', ALL_FIELDS) } : text
}

const IS_FORM = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i
const ALL_FIELDS = { maxKeys: 0 }
/** Some senders begin UTF-8 with it. */
const BYTE_ORDER_MARK = '\uFEFF'

/** Whether a body with a part at each match can be parsed. */
const fits = (text: string, part: RegExp): boolean => {
  const most = MAX_PARSED_BYTES / PARSED_PART_BYTES
  if (text.length <= most) return true
  let parts = 0
  while (part.test(text)) if (++parts > most) return false
  return true
}

/**
 * Parses the body of a request, from the bytes or from `body-raw`, and adds camelCase names as getters, which JSON leaves
 * out.
 */
export const toWebhookRequest = (
  wire: Readonly<Record<string, unknown>>,
  bytes?: Uint8Array,
): WebhookRequest => {
  const request: Record<string, unknown> = { ...wire }
  const encoded = wire['body-bytes']
  if (typeof encoded === 'string') request['body-bytes'] = new Uint8Array(Buffer.from(encoded, 'base64'))
  if (bytes) {
    request['body-raw'] = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
    if (!isUtf8(bytes)) request['body-bytes'] = new Uint8Array(bytes)
  }
  const raw = request['body-raw']
  if (typeof raw === 'string' && !('body' in request)) addBody(request, raw)
  for (const [alias, key] of Object.entries(ALIASES)) {
    Object.defineProperty(request, alias, { get: () => request[key], enumerable: false })
  }
  return request as unknown as WebhookRequest
}

const addBody = (request: Record<string, unknown>, raw: string): void => {
  const parse = () =>
    bodyOf(raw, (request['headers'] as WebhookRequest['headers'] | undefined)?.['content-type'])
  if (raw.length <= LAZY_BYTES) request['body'] = parse()
  else
    Object.defineProperty(request, 'body', {
      get: () => {
        const value = parse()
        Object.defineProperty(request, 'body', { value, writable: true, enumerable: true })
        return value
      },
      set: (value) => {
        Object.defineProperty(request, 'body', { value, writable: true, enumerable: true })
      },
      enumerable: true,
      configurable: true,
    })
}
