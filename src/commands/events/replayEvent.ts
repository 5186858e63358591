import { AppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import { payloadOf } from '../../events/payload.ts'
import { derivedIdBeside } from '../../ids.ts'
import { type PublishedEvent, storeEvent } from './publishEvent.ts'

/** The id of the event that repeats another one. */
export const replayIdOf = (event_id: string): string => derivedIdBeside(event_id, 'replay')

/**
 * Publishes an event again for an operator, on its stream, usually because it was abandoned. A repetition has no further
 * effect, because the id is derived. An event that only some projects have not handled starts handlers of these only. The new event can be replayed itself. Rejects with `not_found` or `quota_exceeded`.
 */
export const replayEvent = async (
  deps: Parameters<typeof storeEvent>[0],
  { event_id }: { readonly event_id: string },
  cause: Cause,
): Promise<PublishedEvent['event']> => {
  const { views, payloads } = deps
  await views.settled('events')
  const original = await views.events.get(event_id)
  if (!original) throw new AppError('not_found', `No event ${event_id}`)
  const { env_id, stream_id, event_type, unread_projects: only_projects } = original
  const before = await views.events.get(replayIdOf(event_id))
  if (before) {
    const { event_id, event_time, created_at } = before
    const event_data = payloads.stored(payloadOf('event_data', before))
    return { event_id, env_id, stream_id, event_type, event_data, event_time, created_at }
  }
  const event_data = await payloads.load(payloadOf('event_data', original))
  const { event } = await storeEvent(
    deps,
    { event_type, event_data, stream_id, source: `replay:${event_id}`, only_projects },
    { cause: { ...cause, env_id, causation_id: event_id }, newId: () => replayIdOf(event_id) },
  )
  return event
}
