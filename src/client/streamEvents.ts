import type { Run, RunError, RunType } from './api.ts'

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
  /** Events between the last one that was received and the next one have expired: the plan keeps them no longer. */
  | Sent<'stream:expired', { readonly type: 'stream:expired'; readonly stream_id: string }>
  /** Live data that a function sent with `emit`. */
  | Sent<
      'stream:data',
      {
        readonly type: 'stream:data'
        readonly run_id: string
        readonly data_type: string
        /** ISO 8601; only with `times`. */
        readonly emitted_at?: string
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

interface RunOfEnv {
  readonly run_id: string
  readonly stream_id: string
  readonly run_type: RunType
  /** `ns/var`; null for evaluated code, and for a run that was cancelled before it started. */
  readonly fn: string | null
  readonly project_id: string | null
  readonly project_name: string | null
  /** 1 for the first run, 2 for its first retry; null if the run never started. */
  readonly attempt: number | null
  readonly start_time: string | null
}

interface EndOfEnv extends RunOfEnv {
  readonly stop_time: string
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
        /** The number of started runs, when there are more than `run_ids` contains. */
        readonly runs?: number
        /** A defect of the service prevented the dispatch. */
        readonly error?: RunError
      }
    >
  | Sent<'run:start', RunOfEnv>
  | Sent<'run:stop', EndOfEnv>
  /** `retry_at` is the time of the next attempt; null if none follows. */
  | Sent<'run:fail', EndOfEnv & { readonly retry_at: string | null; readonly error: RunError }>
  | Sent<'run:cancel', EndOfEnv>
  /** The events of the days before `before` have expired. */
  | Sent<'calls:expired', { readonly before: string }>
