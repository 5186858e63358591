import type { Event, Functions, WebhookRequest } from '../sdk/index.ts'
import type { Jsonified } from '../sdk/jsonified.ts'
import type { Time } from './expected.ts'

export type AnyFunction = (...args: never[]) => unknown

/** Functions that take the place of others, by reference. While `Functions` of `svc` is empty, every reference is allowed. */
export type Stubs = keyof Functions extends never
  ? Readonly<Record<string, AnyFunction>>
  : { readonly [Ref in keyof Functions]?: StubOf<Functions[Ref]> }

type StubOf<Function> = Function extends (...args: infer Arguments) => infer Result
  ? (...args: Arguments) => Awaited<Result> | Promise<Awaited<Result>>
  : never

/** The content of files by path. */
export type Files = Readonly<Record<string, string | Uint8Array>>

export interface TestRunOptions {
  /** The context variables of the project. */
  readonly context?: Readonly<Record<string, string>>
  /** The files of the environment, by path. */
  readonly files?: Files
  /** The functions that `run(ref, …)` of the function reaches, by reference. */
  readonly calls?: Stubs
  /** The time of the events that have none of their own. Default: the time of the run. */
  readonly now?: Time
}

/** The input of a function: fields of an event or a request that are left out are filled in. */
export type InputOf<F extends AnyFunction> =
  Parameters<F> extends readonly [infer First, ...unknown[]]
    ? First extends Event<infer Data>
      ? [event?: Partial<Event> & { readonly data?: Data }]
      : First extends WebhookRequest
        ? [request?: Partial<First>]
        : Parameters<F>
    : Parameters<F>

export type ResultOf<F extends AnyFunction> = Jsonified<Sendable<Awaited<ReturnType<F>>>>

type Bytes = ArrayBufferLike | ArrayBufferView

/** A `Response` of any library. */
interface ResponseLike {
  readonly status: number
  readonly headers: object
  readonly bodyUsed: boolean
  arrayBuffer(): unknown
}

/** A `Response` or bytes of a webhook as its run returns them. */
interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string | number | boolean | readonly string[]>>
  readonly 'body-raw'?: string
  /** Base64. */
  readonly 'body-bytes'?: string
}

type Sendable<Result> = unknown extends Result
  ? Result
  : Result extends Bytes | ResponseLike | { readonly status: number; readonly body: Bytes }
    ? Reply
    : Result

/** An event that the function sent. */
export interface Sent {
  readonly type: string
  readonly data: unknown
}

/** Live data that the function emitted. */
export interface Emitted {
  readonly dataType: string
  readonly payload: unknown
}

/** A function that was started by `call` or `run`. */
export interface Called {
  readonly by: 'call' | 'run'
  readonly ref: string
  readonly args: readonly unknown[]
}

/** A line that the function wrote to `console`. */
export interface Logged {
  readonly source: 'stdout' | 'stderr'
  readonly text: string
}

/** The retry that the service would make after the last failure. */
export interface NextRetry {
  /** 2 for the first retry. */
  readonly attempt: number
  /** Milliseconds after the failure. */
  readonly delay: number
}
