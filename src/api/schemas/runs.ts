import Type, { type Static } from 'typebox'
import { RunError, RunType } from '../../events/run.ts'
import { Timestamp, Uuid, nullable } from './parts.ts'

/** Events and runs. */

/** Replaces a large value of a list. */
const reference = (name: string) =>
  Type.Object(
    {
      size: Type.Integer({ description: 'Bytes of JSON' }),
      href: Type.String({ description: 'Path of the request that returns the value' }),
    },
    {
      description: `Only in lists: \`${name}\` is null, because it has over 64 KiB or the page has over 1 MiB of values`,
    },
  )

const event = {
  event_id: Uuid,
  env_id: Uuid,
  stream_id: Uuid,
  event_type: Type.String(),
  event_data: Type.Unknown(),
  event_data_ref: Type.Optional(reference('event_data')),
  event_time: Timestamp,
  created_at: Timestamp,
}

export const Event = Type.Object({
  ...event,
  sent_by_run_id: nullable(Type.String({ format: 'uuid', description: 'The run whose code sent the event' })),
})

export const PublishedEvent = Type.Object({
  ...event,
  handlers: Type.Optional(
    Type.Integer({
      description:
        'The functions of the deployed builds that the event starts; absent for events that control runs, and while a node catches up',
    }),
  ),
})

export const RunStatus = Type.Union([
  Type.Literal('running'),
  Type.Literal('succeeded'),
  Type.Literal('failed'),
  Type.Literal('cancelled'),
  Type.Literal('pending_retry'),
])

export const Run = Type.Object({
  run_id: Uuid,
  env_id: Uuid,
  stream_id: Uuid,
  build_id: Uuid,
  run_type: RunType,
  status: RunStatus,
  requested_at: Timestamp,
  claimed_at: Type.String({
    format: 'date-time',
    description:
      'When its present worker took it: later than `start_time` if an earlier worker had returned it',
  }),
  start_time: Timestamp,
  stop_time: nullable(Timestamp),
  origin_run_id: nullable(Uuid),
  event_id: nullable(Uuid),
  result: Type.Unknown(),
  result_ref: Type.Optional(reference('result')),
  error: Type.Optional(RunError),
  project_id: Uuid,
  project_name: Type.String(),
  fn: nullable(Type.String({ description: 'Function reference `ns/var`; null for evaluated code' })),
  attempt: Type.Integer(),
  retry_at: nullable(Timestamp),
  retried_by: nullable(Type.String({ format: 'uuid', description: 'The attempt after this one' })),
  parent_run_id: nullable(Uuid),
  replay_of: nullable(Uuid),
})

export type Run = Static<typeof Run>

export const CalledFunction = Type.Object({
  run_id: Uuid,
  event_id: Type.String({ format: 'uuid', description: 'The `svc:call` event' }),
  stream_id: Uuid,
  status: Type.Union(
    [Type.Literal('succeeded'), Type.Literal('failed'), Type.Literal('cancelled'), Type.Null()],
    {
      description: 'Of the last attempt; null if the run has not ended',
    },
  ),
  result: Type.Unknown({ description: 'What the function returned; null if it has not' }),
  error: Type.Optional(RunError),
})

export const RunInput = Type.Object({
  run_id: Uuid,
  kind: nullable(
    Type.String({
      description: '`event`, `args`, `webhook` or `schedule`; null if the input is no longer stored',
    }),
  ),
  event: nullable(
    Type.Object(
      { id: Uuid, type: Type.String(), timestamp: Timestamp, source: Type.String() },
      { description: 'The event that a handler received' },
    ),
  ),
  value: Type.Unknown({
    description:
      'The data of the event or of the tick, the list of arguments, or the request with secrets masked as `***` and without ' +
      'a body of more than 32 KiB',
  }),
  cleared: Type.Boolean({ description: 'The retention period of the value has ended' }),
})

const tracedRun = Type.Object({
  run_id: Uuid,
  stream_id: Uuid,
  fn: nullable(Type.String()),
  project_id: Uuid,
  project_name: Type.String(),
  run_type: RunType,
  status: RunStatus,
  attempt: Type.Integer(),
  retried_by: nullable(Uuid),
  replay_of: nullable(Uuid),
  requested_at: Timestamp,
  start_time: Timestamp,
  stop_time: nullable(Timestamp),
  error: nullable(Type.Object({ code: Type.String(), message: Type.String() })),
})

const tracedEvent = Type.Object({
  event_id: Uuid,
  stream_id: Uuid,
  event_type: Type.String(),
  event_time: Timestamp,
  sent_by_run_id: nullable(Uuid),
})

export const TraceNode = Type.Object({
  kind: Type.Union([Type.Literal('event'), Type.Literal('run')]),
  event: Type.Optional(tracedEvent),
  run: Type.Optional(tracedRun),
  cut: Type.Boolean({ description: 'Some of its children are left out' }),
  children: Type.Array(Type.Unknown({ description: 'A node in the same form' }), {
    description:
      'Runs that an event started; runs that a run called, and events that it sent. The oldest first',
  }),
})

export const RunTrace = Type.Object({
  run_id: Uuid,
  nodes: Type.Integer({ description: 'The events and runs in the tree' }),
  cut: Type.Boolean({ description: 'Parts of the tree are left out, the deepest first' }),
  root: TraceNode,
})

export const RunExplanation = Type.Object({
  run_id: Uuid,
  why: Type.Array(Type.String(), { description: 'Sentences: what started the run, and who requested it' }),
  outcome: Type.String(),
})

export const RunLogs = Type.Object({
  run_id: Uuid,
  request: nullable(
    Type.Object(
      {
        method: Type.String(),
        url: Type.String(),
        query: Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())])),
        headers: Type.Record(Type.String(), Type.String()),
        ip: nullable(Type.String()),
        auth: nullable(Type.String({ description: '`***` if the endpoint requires a credential' })),
        body: Type.Optional(Type.Unknown({ description: 'Omitted if larger than 32 KiB' })),
      },
      {
        description:
          'The request that started a webhook run, with secrets masked as `***`; null for other runs',
      },
    ),
  ),
  lines: Type.Array(
    Type.Object({
      timestamp: Timestamp,
      source: Type.Union([Type.Literal('stdout'), Type.Literal('stderr')]),
      text: Type.String(),
    }),
  ),
})

export const RunStats = Type.Object({
  total_runs: Type.Integer(),
  running: Type.Integer(),
  succeeded: Type.Integer(),
  failed: Type.Integer(),
  cancelled: Type.Integer(),
})

const RunPoint = {
  total_runs: Type.Integer(),
  running: Type.Integer(),
  succeeded: Type.Integer(),
  failed: Type.Integer(),
  cancelled: Type.Integer(),
  pending_retry: Type.Integer(),
  duration_ms: Type.Object(
    {
      count: Type.Integer({ description: 'Runs that have ended' }),
      p50: nullable(Type.Number()),
      p95: nullable(Type.Number()),
      p99: nullable(Type.Number()),
    },
    { description: 'From start to stop, in milliseconds; percentiles are exact to 2.5 percent' },
  ),
}

export const RunSeries = Type.Object({
  interval: Type.Union([Type.Literal('minute'), Type.Literal('hour'), Type.Literal('day')]),
  from: Timestamp,
  to: Timestamp,
  total: Type.Object(RunPoint, { description: 'All points together' }),
  points: Type.Array(Type.Object({ time: Timestamp, ...RunPoint })),
})
