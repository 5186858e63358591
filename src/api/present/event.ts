import type { Payloads } from '../../content/payloads.ts'
import type { EventDoc } from '../../projections/events.ts'

/** SPEC.md, Event. */
export const presentEvent = async ({ order: _, event_data_ref, ...event }: EventDoc, payloads: Payloads) => ({
  ...event,
  event_data: await payloads.load({
    value: event.event_data,
    ...(event_data_ref && { ref: event_data_ref }),
  }),
})
