import { envIdOf } from '../events/event.ts'
import { payloadFields, payloadOf } from '../events/payload.ts'
import type { PayloadRef } from '../events/scalars.ts'
import { BY_TIME, orderOf, type Projection } from './projection.ts'

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
}

export const events: Projection<EventDoc> = {
  name: 'events',
  version: 2,
  indexes: [
    { equal: ['env_id'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: ['env_id', 'event_type'], sort: 'order', counted: true, steps: BY_TIME },
  ],
  handles: ['EventPublished'],
  begins: () => true,
  idsOf: ({ event }) => (event.type === 'EventPublished' ? [event.event_id] : []),

  evolve(doc, recorded) {
    const { event } = recorded
    if (event.type !== 'EventPublished') return doc
    const { event_id, stream_id, event_type, event_time } = event
    return {
      event_id,
      env_id: envIdOf(recorded),
      stream_id,
      event_type,
      ...payloadFields('event_data', payloadOf('event_data', event)),
      event_time,
      created_at: event_time,
      order: orderOf(recorded),
    }
  },
}
