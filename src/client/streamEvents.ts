import type { Run, RunType } from './api.ts'

/** The server-sent events of the API as a client receives them. `id` resumes after the event. */
interface Sent<Name extends string, Data> {
  readonly id: string
  readonly event: Name
  readonly data: Data
}

type RunEvent<Name extends string> = Sent<Name, { readonly type: Name; readonly run: Run }>

/** What happens in a stream. */
export type StreamEvent =
  | RunEvent<'run:start'>
  /** `run.status` is `pending_retry` if another attempt follows. */
  | RunEvent<'run:fail'>
  /** A run succeeded; `run.result` is the value that the function returned. */
  | RunEvent<'run:stop'>
  | RunEvent<'run:cancel'>
  /** Live data that a function sent with `emit`. */
  | Sent<
      'stream:data',
      {
        readonly type: 'stream:data'
        readonly run_id: string
        readonly data_type: string
        readonly payload: unknown
      }
    >

/** The first event of `sendAndFollow`. */
export type EventPublished = Sent<
  'event:published',
  {
    readonly type: 'event:published'
    readonly event_id: string
    readonly stream_id: string
    readonly event_type: string
  }
>

interface EndOfEnv {
  readonly run_id: string
  readonly stream_id: string
  /** `ns/var`; null for evaluated code, and for a run that was cancelled before it started. */
  readonly fn: string | null
  readonly project_id: string | null
  readonly project_name: string | null
}

interface RunOfEnv extends EndOfEnv {
  readonly run_type: RunType
}

interface Failure {
  readonly code: string
  readonly message: string
  readonly stack?: string
}

/** What happens in an environment. */
export type EnvEvent =
  | Sent<'stream:created', { readonly stream_id: string }>
  | Sent<
      'event:created',
      { readonly event_id: string; readonly stream_id: string; readonly event_type: string }
    >
  | Sent<
      'event:handled',
      {
        readonly event_id: string
        readonly stream_id: string
        readonly run_ids: readonly string[]
        /** A defect of the service prevented the dispatch. */
        readonly error?: Failure
      }
    >
  | Sent<'run:start', RunOfEnv>
  | Sent<'run:stop', EndOfEnv>
  | Sent<'run:fail', RunOfEnv & { readonly error: Failure }>
  | Sent<'run:cancel', RunOfEnv>
