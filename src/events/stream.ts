import Type from 'typebox'
import { RunError } from './run.ts'
import { fact, Id, PayloadRef, Text, Time } from './scalars.ts'

/** The first fact of every svc stream. */
export const StreamCreated = fact('StreamCreated', { stream_id: Id })

/** A client, a function or the service itself published an event (SPEC.md, Publishing and handling). */
export const EventPublished = fact('EventPublished', {
  event_id: Id,
  stream_id: Id,
  event_type: Text,
  /** Any JSON; absent when it is too large and is in the blobs, under `event_data_ref`. */
  event_data: Type.Optional(Type.Unknown()),
  event_data_ref: Type.Optional(PayloadRef),
  /** `api`, or `run:<run_id>` for an event from user code. */
  source: Text,
  /** On an event from user code: the depth of the runs that it starts; absent: 0. */
  depth: Type.Optional(Type.Integer()),
  /** On a repeated event: it starts handlers of these projects only. The others have handled it. */
  only_projects: Type.Optional(Type.Array(Id)),
  event_time: Time,
})

/** The event was dispatched to its handlers, which started these runs, if any. Some `RunStarted` of them may come before. */
export const EventHandled = fact('EventHandled', {
  event_id: Id,
  stream_id: Id,
  run_ids: Type.Array(Id),
  /** The number of the runs, when there are more than `run_ids` contains. */
  runs: Type.Optional(Type.Integer()),
  /** Why the event could not be dispatched, so that it started no other runs. */
  error: Type.Optional(RunError),
  /** With an error: only these projects have not handled the event, because their functions could not be read. */
  unread_projects: Type.Optional(Type.Array(Id)),
  /** The run of a call that a caller cancelled before the run began. */
  cancelled_run_id: Type.Optional(Id),
})

/**
 * The place of a fact that had expired when its stream was moved to this event store, so that the later ones keep their revisions.
 * It changes nothing.
 */
export const FactExpired = fact('FactExpired', {})

/** Live data from a run, for example AI tokens. */
export const StreamDataEmitted = fact('StreamDataEmitted', {
  run_id: Id,
  stream_id: Id,
  data_type: Text,
  payload: Type.Optional(Type.Unknown()),
  payload_ref: Type.Optional(PayloadRef),
})
