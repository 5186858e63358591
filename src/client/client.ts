import type { Events, Functions } from '../sdk/index.ts'
import type { ArgumentsOf, DataArgument, Named, ResultOf } from '../sdk/typed.ts'
import type { Event, File, Operations, Page, PublishedEvent, Run, RunLogs, RunStats } from './api.ts'
import type { EnvEvent, EventPublished, StreamEvent } from './streamEvents.ts'

/** What a client can call and send: functions by reference, and the data of events by type. */
export interface Contract {
  readonly functions: object
  readonly events: object
}

/** The contract that this project declares in the interfaces of `svc`. */
export interface Registered extends Contract {
  readonly functions: Functions
  readonly events: Events
}

export interface ClientOptions {
  /** Address of the service, such as `https://svc.example`. */
  readonly url: string
  /**
   * The token of an API key, a session or a service key. A function is called before each request. Null sends none: a
   * page of the service itself has a cookie.
   */
  readonly token: string | (() => string | Promise<string>) | null
  /** Default: the `fetch` of the platform. */
  readonly fetch?: typeof globalThis.fetch
  /**
   * How often a request that can be repeated is sent again after a lost connection, a 429 or a 503. Default 4. A request is
   * not repeated if the reply asks for a wait of more than 30 seconds.
   */
  readonly retries?: number
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface RequestOptions {
  /** Aborts the request; the promise then rejects with the reason of the signal. */
  readonly signal?: AbortSignal
}

export interface PublishOptions extends RequestOptions {
  /** Continues this stream instead of a new one. */
  readonly stream_id?: string
  /** A repetition with the same key publishes nothing. Default: a random key, so that a retry never publishes twice. */
  readonly idempotencyKey?: string
}

export interface CallOptions extends PublishOptions {
  /** Id or name of the project of the function. Default: any project with such a function. */
  readonly project?: string
}

interface WithTimes {
  /** `stream:data` has the time at which the service stored the data. */
  readonly times?: boolean
}

export interface FollowOptions extends RequestOptions, WithTimes {
  /** Begins after the event with this id, at the `start` or at the `end` of the stream. Default `start`. */
  readonly from?: string
  /** Only runs of this project, by id or present name. */
  readonly project?: string
  /** Called each time the connection is established. */
  readonly onOpen?: () => void
}

export interface FollowEnvOptions extends RequestOptions {
  /**
   * Begins after the event with this id, at the `start` or at the `end`. Default `end`. With `consumer`, this is where a new
   * name begins.
   */
  readonly from?: string
  /**
   * The service stores the position under this name, and clients with the same name share the events. What was written to an
   * open connection for half a second counts as delivered, whether or not your code has handled it. A handler that must not
   * miss an event follows without a name, `from` the id of the last event that it handled.
   */
  readonly consumer?: string
  /** Called each time the connection is established. */
  readonly onOpen?: () => void
}

export interface ResultOptions extends RequestOptions {
  /** The longest time to wait in milliseconds, after which the promise rejects with code `timeout`. Default: no limit. */
  readonly timeoutMs?: number
}

/** A call is durable when its promise resolves. */
export interface Call<Result> extends Promise<PublishedEvent> {
  /**
   * Waits for the end of the run and of its retries. Resolves with the result as JSON, and rejects with a
   * `RunError` if it fails. A lost connection is restored.
   */
  result(options?: ResultOptions): Promise<Result>
  /** As `result`, but resolves with the run, also with one that failed or was cancelled. */
  ended(options?: ResultOptions): Promise<Run>
}

export interface PageOptions extends RequestOptions {
  /** 1-100, default 20. */
  readonly limit?: number
  readonly offset?: number
}

type QueryOf<Operation extends keyof Operations> = Operations[Operation] extends {
  readonly query?: infer Query
}
  ? Query
  : unknown

/** Filters of a list, with its page. */
type ListOptions<Operation extends keyof Operations> = QueryOf<Operation> & RequestOptions

export interface Runs {
  list(options?: ListOptions<'GET /v1/runs'>): Promise<Page<Run>>
  /** Reads all pages, newest first. Runs that start meanwhile are left out. */
  all(options?: Omit<ListOptions<'GET /v1/runs'>, 'limit' | 'offset'>): AsyncIterable<Run>
  get(run_id: string, options?: RequestOptions): Promise<Run>
  logs(run_id: string, options?: RequestOptions): Promise<RunLogs>
  stats(options?: RequestOptions): Promise<RunStats>
  /** Waits for the end of the run and of its retries; resolves and rejects as `Call.result` does. */
  result(run_id: string, options?: ResultOptions): Promise<unknown>
  /** As `result`, but resolves with the run, also with one that failed or was cancelled. */
  ended(run_id: string, options?: ResultOptions): Promise<Run>
  cancel(run_id: string, options?: PublishOptions): Promise<PublishedEvent>
  /** Starts a new run with the function and the input of this one. */
  replay(run_id: string, options?: PublishOptions): Call<unknown>
}

export interface EventList {
  list(options?: ListOptions<'GET /v1/events'>): Promise<Page<Event>>
  /** Reads all pages, newest first. Events that are published meanwhile are left out. */
  all(options?: Omit<ListOptions<'GET /v1/events'>, 'limit' | 'offset'>): AsyncIterable<Event>
  get(event_id: string, options?: RequestOptions): Promise<Event>
  /** The runs that the event started, newest first. */
  runs(event_id: string, options?: PageOptions): Promise<Page<Run>>
}

/** What can be stored. A `Blob` may have any size; `fs.openAsBlob(path)` opens one from the disk. */
export type Content = string | Uint8Array | Blob

export interface PutOptions extends RequestOptions {
  /** Default: the type of a `Blob`, `text/plain; charset=utf-8` for a string, else `application/octet-stream`. */
  readonly contentType?: string
  /** Called with the bytes that the service has, after each part. */
  readonly onProgress?: (sentBytes: number) => void
}

export interface Files {
  list(options?: ListOptions<'GET /v1/files'>): Promise<Page<File>>
  /** Reads all pages, in the order of the paths. Removed files do not hide others, so each may be deleted at once. */
  all(options?: Omit<ListOptions<'GET /v1/files'>, 'limit' | 'offset'>): AsyncIterable<File>
  /** The metadata of the file at a path. Rejects with code `not_found`. */
  stat(path: string, options?: RequestOptions): Promise<File>
  /** The file with its content in memory. Rejects with code `not_found`. */
  get(path: string, options?: RequestOptions): Promise<File & { readonly content: Uint8Array<ArrayBuffer> }>
  /** The file with its content as a stream. */
  open(
    path: string,
    options?: RequestOptions,
  ): Promise<File & { readonly content: ReadableStream<Uint8Array<ArrayBuffer>> }>
  /** Creates a file or replaces its content. Large content is sent in parts, each of which is retried by itself. */
  put(path: string, content: Content, options?: PutOptions): Promise<FileWritten>
  delete(path: string, options?: RequestOptions): Promise<void>
}

/** A file in the reply to an upload. */
export type FileWritten = Omit<File, 'created_by_run_id' | 'updated_by_run_id'>

type Parts<Operation extends keyof Operations> = Omit<Operations[Operation], 'reply'>

/** Operations whose reply is JSON. */
export type JsonOperation = {
  [Operation in keyof Operations]: Operations[Operation] extends { readonly reply: Response }
    ? never
    : Operation
}[keyof Operations]

/** The path, query and body of an operation; further headers; a signal. */
export type RequestInput<Operation extends keyof Operations> = Parts<Operation> &
  RequestOptions & { readonly headers?: Readonly<Record<string, string>>; readonly idempotencyKey?: string }

/** `input` may be left out if no part of it is required. */
export type RequestArguments<Operation extends keyof Operations> =
  Record<never, never> extends Parts<Operation>
    ? [input?: RequestInput<Operation>]
    : [input: RequestInput<Operation>]

/** The API of one environment, with one credential. It works in browsers and in Node 20.19 or later. */
export interface Client<C extends Contract = Registered> {
  readonly url: string
  /** Publishes an event. It is durable when the promise resolves. */
  send<Type extends string>(
    type: Named<C['events'], Type>,
    ...rest: [...DataArgument<C['events'], Type>, options?: PublishOptions]
  ): Promise<PublishedEvent>
  /** Starts a function as a background run. `ref` is `ns/var`, for example `orders.handlers/onCreated`. */
  call<Ref extends string>(
    ref: Named<C['functions'], Ref>,
    ...args: ArgumentsOf<C['functions'], Ref>
  ): Call<ResultOf<C['functions'], Ref>>
  /** As `call`, with the arguments as a list and options. */
  callWith<Ref extends string>(
    ref: Named<C['functions'], Ref>,
    args: ArgumentsOf<C['functions'], Ref>,
    options: CallOptions,
  ): Call<ResultOf<C['functions'], Ref>>
  /**
   * Follows a stream until it is complete: until nothing in it is running, due or undispatched. A lost connection is
   * restored after the last event, so no event is lost or repeated.
   */
  follow(stream_id: string, options?: FollowOptions): AsyncIterable<StreamEvent>
  /** Publishes an event and follows its stream. The first event is always `event:published`. */
  sendAndFollow<Type extends string>(
    type: Named<C['events'], Type>,
    ...rest: [...DataArgument<C['events'], Type>, options?: PublishOptions & WithTimes]
  ): AsyncIterable<EventPublished | StreamEvent>
  /** Follows all activity of the environment until the signal aborts. */
  followEnv(options?: FollowEnvOptions): AsyncIterable<EnvEvent>
  readonly runs: Runs
  readonly events: EventList
  readonly files: Files
  /** Any operation of the API whose reply is JSON. Resolves with `data` of the reply; a list also has `pagination`. */
  request<Operation extends JsonOperation>(
    operation: Operation,
    ...input: RequestArguments<Operation>
  ): Promise<Operations[Operation]['reply']>
  /** Any operation of the API, with its reply as it is. Rejects with a `ServiceError` unless the status is 2xx. */
  open<Operation extends keyof Operations>(
    operation: Operation,
    ...input: RequestArguments<Operation>
  ): Promise<Response>
}
