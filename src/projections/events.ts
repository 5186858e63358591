import { envIdOf } from '../events/event.ts'
import type { DomainEvent, EventOf } from '../events/index.ts'
import { CALL } from '../events/eventType.ts'
import { payloadFields, payloadOf } from '../events/payload.ts'
import type { RunError } from '../events/run.ts'
import type { PayloadRef } from '../events/scalars.ts'
import { BY_TIME, expiredCalls, orderOf, type Projection, withId } from './projection.ts'

/** A published event (SPEC.md, Event). */
export type EventDoc = {
  readonly event_id: string
  readonly env_id: string
  readonly stream_id: string
  readonly event_type: string
  readonly event_data?: unknown
  readonly event_data_ref?: PayloadRef
  readonly event_time: string
  readonly created_at: string
  readonly order: string
  /** `run_id/order` of an event that a run sent, for its trace; else null. */
  readonly sent_by: string | null
  /** Its id if it is a call, in whose millisecond the run that it starts is found; else null. */
  readonly call_id: string | null
  /** When a defect kept the event from its handlers, in the form of `order`, and the error that its stream records. */
  readonly abandoned?: string
  readonly error?: RunError
  /** The projects that have not handled it, if others have. */
  readonly unread_projects?: readonly string[]
}

export const events: Projection<EventDoc> = {
  name: 'events',
  version: 6,
  forgetsRemovals: true,
  indexes: [
    { equal: ['env_id'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: ['env_id', 'event_type'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: [], sort: 'abandoned', sparse: true },
    { equal: [], sort: 'sent_by', sparse: true },
    { equal: ['env_id'], sort: 'call_id', sparse: true },
  ],
  handles: ['EventPublished', 'EventHandled', 'EnvPurged', 'CallsExpired'],
  begins: ({ event }) => event.type === 'EventPublished',
  idsOf({ event }) {
    if (event.type === 'EventPublished') return [event.event_id]
    return isAbandoned(event) ? [event.event_id] : []
  },
  clears: ({ event }) => expiredCalls(event, ({ event_id }: EventDoc) => event_id),

  evolve(doc, recorded) {
    const { event } = recorded
    if (isAbandoned(event)) {
      const { error, unread_projects } = event
      return (
        doc && { ...doc, abandoned: orderOf(recorded), error, ...(unread_projects && { unread_projects }) }
      )
    }
    if (event.type !== 'EventPublished') return doc
    const { event_id, stream_id, event_type, event_time, source } = event
    const order = orderOf(recorded)
    return {
      event_id,
      env_id: envIdOf(recorded),
      stream_id,
      event_type,
      ...payloadFields('event_data', payloadOf('event_data', event)),
      event_time,
      created_at: event_time,
      order,
      call_id: event_type === CALL ? event_id : null,
      sent_by: source.startsWith(BY_RUN) ? `${source.slice(BY_RUN.length)}/${order}` : null,
    }
  },
}

/** A defect kept the event from its handlers. A client that cancels a call has it handled with another error. */
const isAbandoned = (event: DomainEvent): event is EventOf<'EventHandled'> & { readonly error: RunError } =>
  event.type === 'EventHandled' && event.error !== undefined && event.error.code !== 'cancelled'

/** Begins the source of an event that a run sent. */
const BY_RUN = 'run:'

/** The id of the run that sent an event; null for any other event. */
export const senderOf = ({ sent_by }: EventDoc): string | null => sent_by?.split('/')[0] ?? null

/** The bounds of `sent_by` for the events of a run. */
export const sentBy = withId
