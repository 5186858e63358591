import type { Payloads } from '../../content/payloads.ts'
import { payloadOf } from '../../events/payload.ts'
import { type EventDoc, senderOf } from '../../projections/events.ts'
import type { PageValues } from './pageValues.ts'

/** Returns an event as the API describes it (SPEC.md, Event). Large data remains in the blobs. */
export const presentEvent = (doc: EventDoc, payloads: Pick<Payloads, 'stored'>) => {
  const { order: _, event_data_ref: __, ...event } = published(doc)
  return { ...event, event_data: payloads.stored(payloadOf('event_data', doc)) }
}

/** Returns an event of a list, where large data is a reference. */
export const presentListedEvent = (doc: EventDoc, values: PageValues) => {
  const { order: _, event_data: __, event_data_ref: ___, ...event } = published(doc)
  const href = `/v1/events/${doc.event_id}`
  return { ...event, ...values.fields('event_data', payloadOf('event_data', doc), href) }
}

/** The event without the fate that only an operator sees, and without the fields of its indexes. */
const published = ({ abandoned: _, error: __, unread_projects: ___, ...doc }: EventDoc) => {
  const { sent_by: ____, call_id: _____, ...event } = doc
  return { ...event, sent_by_run_id: senderOf(doc) }
}
