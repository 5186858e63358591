import type { Payloads } from '../../content/payloads.ts'
import { payloadOf } from '../../events/payload.ts'
import type { EventDoc } from '../../projections/events.ts'

/** Returns an event as the API describes it (SPEC.md, Event). */
export const presentEvent = async (doc: EventDoc, payloads: Payloads) => {
  const { order: _, event_data_ref: __, ...event } = doc
  return { ...event, event_data: await payloads.load(payloadOf('event_data', doc)) }
}
