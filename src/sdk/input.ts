/** What a function is called with when an event starts it; a schedule's has type `svc:schedule`. */
export interface Event<Data = unknown> {
  readonly type: string
  readonly data: Data
  readonly id: string
  readonly timestamp: string
  readonly source: string
}

/** The event of a scheduled run. */
export type Tick = Event<{ readonly cron: string; readonly scheduled_time: string }>

/** SPEC.md, Webhook request given to the handler. */
export interface WebhookRequest<Body = unknown> {
  readonly method: string
  /** Internal path without token: safe to log. */
  readonly url: string
  /** As the caller used it, token included: never log it. */
  readonly 'original-url'?: string
  readonly originalUrl?: string
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: Body
  /** What signatures are verified against; lossy when the body is not UTF-8. */
  readonly 'body-raw'?: string
  readonly bodyRaw?: string
  /** The verbatim body, only when it is not UTF-8. */
  readonly 'body-bytes'?: Uint8Array
  readonly bodyBytes?: Uint8Array
  readonly ip?: string
  readonly auth?: Readonly<Record<string, unknown>>
}

/** SPEC.md, Webhook response. Any other value a handler returns is sent as JSON with status 200. */
export interface WebhookResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

const ALIASES = { originalUrl: 'original-url', bodyRaw: 'body-raw', bodyBytes: 'body-bytes' } as const

/** The request as handlers see it: bytes decoded, camelCase names as getters that JSON leaves out. */
export const toWebhookRequest = (wire: Readonly<Record<string, unknown>>): WebhookRequest => {
  const request: Record<string, unknown> = { ...wire }
  const encoded = wire['body-bytes']
  if (typeof encoded === 'string') request['body-bytes'] = new Uint8Array(Buffer.from(encoded, 'base64'))
  for (const [alias, key] of Object.entries(ALIASES)) {
    Object.defineProperty(request, alias, { get: () => request[key], enumerable: false })
  }
  return request as unknown as WebhookRequest
}
