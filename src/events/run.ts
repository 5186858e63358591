import Type, { type Static } from 'typebox'
import { Permissions } from './org.ts'
import { fact, Id, PayloadRef, record, Text, Time } from './scalars.ts'

export const RunType = Type.Union([
  Type.Literal('call'),
  Type.Literal('event'),
  Type.Literal('schedule'),
  Type.Literal('run'),
  Type.Literal('eval'),
  Type.Literal('repl'),
])
export type RunType = Static<typeof RunType>

/** The code a run executes: a function of a build, or a piece of code evaluated beside it. */
export const Target = Type.Union([
  record({ ns: Text, var: Text }),
  record({ code: Type.String(), repl_id: Type.Optional(Type.String()) }),
])
export type Target = Static<typeof Target>

/** At most `attempts` runs after the first one, `delay` milliseconds apart (SPEC.md, Limits). */
export const Retry = record({ attempts: Type.Integer(), delay: Type.Integer() })
export type Retry = Static<typeof Retry>

/** The position of the input of a run: the `EventPublished` or `RunRequested` at this revision of this stream. */
export const InputAt = record({ stream_id: Id, revision: Type.Integer() })
export type InputAt = Static<typeof InputAt>

/** The credential that evaluates code, with the permissions it had: each of the maps must allow an action. */
export const Evaluator = record({
  kind: Type.Union([Type.Literal('api-key'), Type.Literal('session'), Type.Literal('service-key')]),
  id: Id,
  permissions: Type.Immutable(Type.Array(Permissions)),
})
export type Evaluator = Static<typeof Evaluator>

/** The part of a run that never changes. */
const plan = {
  run_id: Id,
  stream_id: Id,
  run_type: RunType,
  build_id: Id,
  project_id: Id,
  project_name: Text,
  target: Target,
  /** Milliseconds. */
  timeout: Type.Optional(Type.Integer()),
  retry: Type.Optional(Retry),
  /** True: the run never starts a second time after its process or machine died. */
  once: Type.Optional(Type.Boolean()),
  /** True: its worker should store `RunBegun`, so that a run whose code never began can go to another worker. */
  marks_begin: Type.Optional(Type.Boolean()),
  /** Keys of the context variables that the run may read; absent: all of its project. */
  context: Type.Optional(Type.Immutable(Type.Array(Text))),
  /** Present on evaluated code, which may do what this credential may. */
  evaluator: Type.Optional(Evaluator),
  /** 1 for the first run, 2 for its first retry. */
  attempt: Type.Integer(),
  /** The number of earlier attempts that were lost through no fault of their own; absent: 0. */
  lost: Type.Optional(Type.Integer()),
  /** The number of those that were lost with a process, while their worker lived; absent: 0. */
  lost_with_process: Type.Optional(Type.Integer()),
  /** True: the attempt before it was lost, so this one does not count as a further run of the plan of the organization. */
  replaces_lost: Type.Optional(Type.Boolean()),
  /** The number of runs above this one in the chain of causes; absent: 0. A retry keeps it. */
  depth: Type.Optional(Type.Integer()),
  event_id: Type.Optional(Id),
  /** On a retry: the first run of the chain. */
  origin_run_id: Type.Optional(Id),
  /** On a child run: the run that called it. */
  parent_run_id: Type.Optional(Id),
  /** On a replay: the run that is replayed. */
  replay_of: Type.Optional(Id),
  /** On a retry and a tick: when it was due. The id of any other run contains the time of its request. */
  requested_at: Type.Optional(Time),
  /** The trace context of what started the run (W3C `traceparent`). A retry keeps it; absent if it is not traced. */
  traceparent: Type.Optional(Type.String()),
  /** Absent when the fact that carries the input is `RunRequested` itself. */
  input_at: Type.Optional(InputAt),
}

export const RunPlan = record(plan)
export type RunPlan = Static<typeof RunPlan>

/** The input of the function: a webhook request or a list of arguments. */
export const RunInput = record({
  kind: Type.Union([Type.Literal('args'), Type.Literal('webhook'), Type.Literal('tick')]),
  value: Type.Optional(Type.Unknown()),
  value_ref: Type.Optional(PayloadRef),
  /** The body of a webhook request that is too large for the value: bytes, not JSON. */
  body_ref: Type.Optional(PayloadRef),
  /** The secret fields of the value, as ciphertext of their JSON (I6). */
  sealed: Type.Optional(Type.String()),
})
export type RunInput = Static<typeof RunInput>

/** A run was requested; the worker that claims it appends `RunStarted`. */
export const RunRequested = fact('RunRequested', {
  ...plan,
  input: Type.Optional(RunInput),
  /** The worker that had claimed the run and returned it before its code began. */
  returned_by: Type.Optional(Id),
})

/** A worker claimed the run: this append is the claim, and there is no other lock (I3). */
export const RunStarted = fact('RunStarted', {
  ...plan,
  worker_id: Id,
  start_time: Time,
  /** True: an earlier worker had claimed the run and returned it. */
  reclaimed: Type.Optional(Type.Boolean()),
  /** True: this worker stores `RunBegun` before the code begins. svc 0.1.0 never does. */
  will_mark: Type.Optional(Type.Boolean()),
})

/** The code of the run may begin from now on. It is stored only for runs that must not begin twice. */
export const RunBegun = fact('RunBegun', { run_id: Id, stream_id: Id, worker_id: Id })

/** Fields that the author of an error added to it, as small JSON. */
const ErrorFields = Type.Record(Type.String(), Type.Unknown(), {
  description: 'The own fields of the error, as small JSON; fields that look like secrets are `***`',
})

/** The cause of an error, or one of the errors of an `AggregateError`. `cause` and `errors` have the same form. */
export const Thrown = record({
  name: Type.Optional(
    Type.String({ description: 'Absent if the value is no error; then `message` shows the value' }),
  ),
  message: Type.String(),
  code: Type.Optional(
    Type.Union([Type.String(), Type.Number()], {
      description: 'The `code` of the error, such as `ECONNREFUSED`',
    }),
  ),
  stack: Type.Optional(Type.String()),
  fields: Type.Optional(ErrorFields),
  cause: Type.Optional(Type.Unknown({ description: 'Its own cause, in the same form' })),
  errors: Type.Optional(Type.Array(Type.Unknown(), { description: 'The errors in it, in the same form' })),
})
export type Thrown = Static<typeof Thrown>

/** Where user code failed, in the source as the user wrote it. Line and column begin at 1. */
export const ErrorLocation = record({
  file: Type.String({ description: 'Path in the build, or in the project if the build has source maps' }),
  line: Type.Integer(),
  column: Type.Integer(),
  snippet: Type.Optional(Type.String({ description: 'The source line, or 200 characters of it' })),
})
export type ErrorLocation = Static<typeof ErrorLocation>

/** What a failure has beside its code, message and stack. Earlier versions stored none of it. */
const details = {
  name: Type.Optional(Type.String({ description: 'The class of the thrown error' })),
  location: Type.Optional(ErrorLocation),
  fields: Type.Optional(ErrorFields),
  cause: Type.Optional(Thrown),
  errors: Type.Optional(
    Type.Array(Thrown, { description: 'The errors of an `AggregateError`, at most ten' }),
  ),
}
export const ErrorDetails = record(details)
export type ErrorDetails = Static<typeof ErrorDetails>

export const RunError = record({
  code: Type.String({
    description: 'The reason, such as `function_failed`; the `code` of the thrown error is in `fields`',
  }),
  message: Type.String(),
  stack: Type.Optional(Type.String()),
  ...details,
})
export type RunError = Static<typeof RunError>

/** The fields of every end of a run: `started_revision` is that of its `RunStarted`, null if it never started. */
const ending = {
  run_id: Id,
  stream_id: Id,
  run_type: RunType,
  started_revision: Type.Union([Type.Integer(), Type.Null()]),
  stop_time: Time,
}

export const RunSucceeded = fact('RunSucceeded', {
  ...ending,
  result: Type.Optional(Type.Unknown()),
  result_ref: Type.Optional(PayloadRef),
})

/** The plan of a retry that ends before a worker claims it: no other fact begins its document. svc 0.1.0 never stored it. */
const unclaimed = { unclaimed: Type.Optional(RunPlan) }

/** The function failed. With `retry_at` the run is `pending_retry` until then, else `failed`. */
export const RunFailed = fact('RunFailed', {
  ...ending,
  ...unclaimed,
  error: RunError,
  retry_at: Type.Optional(Time),
})

/** The retry of a failed run was requested; from now on, the run itself is `failed`. */
export const RunRetried = fact('RunRetried', { run_id: Id, stream_id: Id, retry_run_id: Id })

export const RunCancelled = fact('RunCancelled', {
  ...ending,
  ...unclaimed,
  /** The status before the cancellation; `requested` if no worker had claimed the run. */
  was: Type.Union([Type.Literal('requested'), Type.Literal('running'), Type.Literal('pending_retry')]),
})
