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

/** The reply of a webhook handler. Any other returned value is sent as JSON with status 200. */
export interface WebhookResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

const ALIASES = { originalUrl: 'original-url', bodyRaw: 'body-raw', bodyBytes: 'body-bytes' } as const

/** Decodes the bytes of a request and adds camelCase names as getters, which JSON leaves out. */
export const toWebhookRequest = (wire: Readonly<Record<string, unknown>>): WebhookRequest => {
  const request: Record<string, unknown> = { ...wire }
  const encoded = wire['body-bytes']
  if (typeof encoded === 'string') request['body-bytes'] = new Uint8Array(Buffer.from(encoded, 'base64'))
  for (const [alias, key] of Object.entries(ALIASES)) {
    Object.defineProperty(request, alias, { get: () => request[key], enumerable: false })
  }
  return request as unknown as WebhookRequest
}
