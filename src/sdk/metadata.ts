import type { Event, Tick, WebhookRequest } from './input.ts'

/** Attempts after the first one (0-10), or those and the milliseconds between them (default 1000, at most an hour). */
export type Retry = number | { readonly attempts: number; readonly delay?: number }

/** Five-field cron expression, in UTC unless an IANA zone is given. */
export type Schedule = string | { readonly cron: string; readonly timezone?: string }

/** SPEC.md, Webhook endpoint. */
export interface Webhook {
  /** Groups endpoints; part of the URL: letters, digits, `-`, `_`, `.`. */
  readonly service: string
  /** Path within the service. */
  readonly path: string
  /** Default POST. */
  readonly method?: 'GET' | 'PUT' | 'PATCH' | 'DELETE' | 'POST'
  /** Default `<ns>_<var>`. */
  readonly name?: string
  readonly description?: string
  /** `none` (default) is public, `required` wants a Bearer credential. */
  readonly auth?: 'none' | 'required'
  readonly agent?: string
}

/** What the service should do with a function. Hyphenated keys and camelCase ones mean the same. */
export interface Metadata {
  /** Type of the events that start it. */
  readonly 'on-event'?: string
  readonly onEvent?: string
  readonly retry?: Retry
  readonly schedule?: Schedule
  readonly webhook?: Webhook
  /** Names of headers to mask in run logs, beside the ones that always are. */
  readonly 'secret-headers'?: readonly string[]
  readonly secretHeaders?: readonly string[]
  /** Milliseconds after which a run of it is stopped: 1-900000. */
  readonly timeout?: number
}

type AnyFunction = (...args: never[]) => unknown

const METADATA = Symbol.for('svc.metadata')

// oxlint-disable typescript/no-explicit-any -- a handler names the type of its data itself
/** The type of a handler follows from what starts it, so that its parameter needs no annotation. */
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
 * Attaches metadata to a function, for the service to read when the build is uploaded. Returns the same
 * function, or one that calls it when it already has metadata: the same handler may be exported twice.
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
