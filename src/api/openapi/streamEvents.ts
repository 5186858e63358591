import Type, { type TSchema } from 'typebox'
import { Run, RunError, RunType } from '../schemas.ts'
import { Timestamp } from '../schemas/parts.ts'

/** The data of every server-sent event by event name (SPEC.md, Server-sent events). */

type Events = Readonly<Record<string, TSchema>>

const Uuid = Type.String({ format: 'uuid' })

const runEvent = (type: string, description: string) =>
  Type.Object({ type: Type.Literal(type), run: Run }, { description })

export const streamEvents: Events = {
  'run:start': runEvent('run:start', 'A run started'),
  'stream:data': Type.Object(
    {
      type: Type.Literal('stream:data'),
      run_id: Uuid,
      data_type: Type.String(),
      emitted_at: Type.Optional(
        Type.String({
          format: 'date-time',
          description: 'Only with `times=true`: when the service stored it',
        }),
      ),
      payload: Type.Unknown({ description: 'Any JSON' }),
    },
    { description: 'Live data that a function sent with `emit`' },
  ),
  'run:stop': runEvent('run:stop', 'A run succeeded; `run.result` is the value that the function returned'),
  'run:fail': runEvent(
    'run:fail',
    'A run failed; `run.status` is `pending_retry` if another attempt follows',
  ),
  'run:cancel': runEvent('run:cancel', 'A run was cancelled'),
  'stream:expired': Type.Object(
    { type: Type.Literal('stream:expired'), stream_id: Uuid },
    {
      description:
        'Events between the last event that the client received and the next one have expired: the plan keeps them no longer',
    },
  ),
  'stream:complete': Type.Object(
    {
      stream_id: Uuid,
      reason: Type.Union([Type.Literal('completed'), Type.Literal('timeout')]),
      next: Type.String({ description: 'To resume after this event, send it as `from` or `Last-Event-ID`' }),
    },
    {
      description:
        'Always the last event. `completed`: the stream has nothing running, due or undispatched. `timeout`: the time limit of the subscription was reached',
    },
  ),
}

export const publishedEvent: Events = {
  'event:published': Type.Object(
    {
      type: Type.Literal('event:published'),
      event_id: Uuid,
      stream_id: Uuid,
      event_type: Type.String(),
    },
    { description: 'Always the first event: the published event is stored' },
  ),
}

const nullable = (schema: TSchema) => Type.Union([schema, Type.Null()])

const ofEnv = {
  run_id: Uuid,
  stream_id: Uuid,
  fn: nullable(Type.String({ description: 'Function reference `ns/var`; null for evaluated code' })),
  project_id: nullable(Type.String({ format: 'uuid', description: 'Null if the run never started' })),
  project_name: nullable(Type.String()),
  run_type: RunType,
  attempt: nullable(Type.Integer({ description: '1 for the first run, 2 for its first retry' })),
  start_time: nullable(Timestamp),
}
const endOfEnv = { ...ofEnv, stop_time: Timestamp }
const retryAt = Type.String({ format: 'date-time', description: 'When another attempt follows; else null' })

export const envEvents: Events = {
  'stream:created': Type.Object({ stream_id: Uuid }, { description: 'A stream was created' }),
  'event:created': Type.Object(
    { event_id: Uuid, stream_id: Uuid, event_type: Type.String() },
    { description: 'An event was published' },
  ),
  'event:handled': Type.Object(
    {
      event_id: Uuid,
      stream_id: Uuid,
      run_ids: Type.Array(Uuid),
      runs: Type.Optional(Type.Integer()),
      error: Type.Optional(RunError),
    },
    {
      description:
        'The event was dispatched to its handlers. `run_ids` lists the started runs and may be empty. It lists at most 10,000 of them; if there are more, `runs` is their number. With `error`, a defect of the service prevented the dispatch',
    },
  ),
  'run:start': Type.Object(ofEnv, { description: 'A run started' }),
  'run:stop': Type.Object(endOfEnv, { description: 'A run succeeded' }),
  'run:fail': Type.Object(
    { ...endOfEnv, retry_at: nullable(retryAt), error: RunError },
    { description: 'A run failed; a retry may follow' },
  ),
  'run:cancel': Type.Object(endOfEnv, { description: 'A run was cancelled' }),
  'calls:expired': Type.Object(
    { before: Type.String({ format: 'date', description: 'The first day whose calls are kept' }) },
    {
      description:
        'The events of earlier days have expired: a client that has not received all of them does not receive the others any more',
    },
  ),
}
