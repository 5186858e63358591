import type { Event, Tick, WebhookRequest } from './input.ts'

/** Number of retries (0-10), optionally with the delay between them in milliseconds (default 1000, at most 1 hour). */
export type Retry = number | { readonly attempts: number; readonly delay?: number }

/** Cron expression of five fields, or six that begin with the seconds, in UTC unless an IANA time zone is given. */
export type Schedule = string | { readonly cron: string; readonly timezone?: string }

/** The provider whose signatures are checked, and the key of the context variable that contains the secret. */
export type Verify =
  | { readonly stripe: string }
  | { readonly github: string }
  | { readonly slack: string }
  | { readonly 'standard-webhooks': string }
  | { readonly standardWebhooks: string }

/** A public URL that runs the function. */
export interface Webhook {
  /** Groups endpoints and is part of the URL. Allowed: letters, digits, `-`, `_` and `.`. */
  readonly service: string
  /** Path within the service. A segment such as `:id` is a parameter, which `request.params` contains. */
  readonly path: string
  /** Default POST. */
  readonly method?: 'GET' | 'PUT' | 'PATCH' | 'DELETE' | 'POST'
  /** Default `<ns>_<var>`. */
  readonly name?: string
  readonly description?: string
  /** `none` (default): public. `required`: the request needs a Bearer credential. */
  readonly auth?: 'none' | 'required'
  /** Runs the function only for requests with a valid signature of the provider. */
  readonly verify?: Verify
  /**
   * Origins whose pages may send requests from a browser, such as `https://shop.example` or `http://localhost:*`;
   * `'*'` is every page. Absent: the service answers no preflight.
   */
  readonly cors?: '*' | readonly string[]
  readonly agent?: string
}

/** Makes the function a tool for AI agents (MCP). It receives the arguments as one object. */
export interface Mcp {
  /** Groups tools, and is the path of the permission `mcp:SERVICE`. Allowed: letters, digits, `-`, `_` and `.`. */
  readonly service: string
  /** Describes to a model what the tool does and when to use it. */
  readonly description: string
  /** JSON Schema of the arguments, checked before the function runs; absent: any object. */
  readonly input?: Readonly<Record<string, unknown>>
}

/** Describes how the service uses a function. Hyphenated and camelCase keys are equivalent. */
export interface Metadata {
  /** Type of the events that start the function. */
  readonly 'on-event'?: string
  readonly onEvent?: string
  readonly retry?: Retry
  /** True: a run whose process or machine died does not start again; it ends as `worker_lost`. */
  readonly once?: boolean
  readonly schedule?: Schedule
  readonly webhook?: Webhook
  readonly mcp?: Mcp
  /** Names of further headers to mask in run logs. */
  readonly 'secret-headers'?: readonly string[]
  readonly secretHeaders?: readonly string[]
  /** Keys of the only context variables that the function may read; absent: all of its project, `[]`: none. */
  readonly context?: readonly string[]
  /** Time limit of a run in milliseconds: 1-900000. */
  readonly timeout?: number
  /** Keys of your own, which the service does not read. */
  readonly [own: `x-${string}`]: unknown
}

type AnyFunction = (...args: never[]) => unknown

const METADATA = Symbol.for('svc.metadata')

// oxlint-disable typescript/no-explicit-any -- a handler declares the type of its data itself
/** The metadata determines the type of the handler, so its parameter needs no annotation. */
interface Fn {
  <F extends (request: WebhookRequest<any>) => unknown>(
    metadata: Metadata & { readonly webhook: Webhook },
    handler: F,
  ): F
  <F extends (tick: Tick) => unknown>(metadata: Metadata & { readonly schedule: Schedule }, handler: F): F
  <F extends (event: Event<any>) => unknown>(metadata: Metadata & HandlesEvent, handler: F): F
  <F extends AnyFunction>(metadata: Metadata, handler: F): F
}
type HandlesEvent = { readonly 'on-event': string } | { readonly onEvent: string }
// oxlint-enable typescript/no-explicit-any

/**
 * Attaches metadata to a function; the service reads it when the build is uploaded. Returns the same
 * function, or a bound copy if it already has metadata, so that one handler can be exported twice.
 */
export const fn: Fn = <F extends AnyFunction>(metadata: Metadata, handler: F): F => {
  if (typeof handler !== 'function')
    throw new TypeError(`Expected fn(metadata, function), got ${typeof handler}`)
  const target = metadataOf(handler) === undefined ? handler : (handler.bind(undefined) as F)
  Object.defineProperty(target, METADATA, { value: metadata })
  return target
}

export const metadataOf = (candidate: unknown): unknown =>
  typeof candidate === 'function' ? Reflect.get(candidate, METADATA) : undefined
