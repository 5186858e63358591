import type { Recorded } from '../../events/event.ts'
import type { EventType } from '../../events/index.ts'
import type { RunPlaces } from '../../commands/streams/runPlaces.ts'
import { frame } from './sse.ts'

/** The facts that appear in the environment stream (SPEC.md, Server-sent events). */
export const envTypes: readonly EventType[] = [
  'StreamCreated',
  'EventPublished',
  'EventHandled',
  'RunStarted',
  'RunSucceeded',
  'RunFailed',
  'RunCancelled',
  'CallsExpired',
]

/** Converts a fact to an event of the environment stream. Returns null if it does not appear there. */
export const envFrame = async ({ event, cursor }: Recorded, places: RunPlaces): Promise<Buffer | null> => {
  switch (event.type) {
    case 'StreamCreated':
      return frame(cursor, 'stream:created', { stream_id: event.stream_id })
    case 'EventPublished': {
      const { event_id, stream_id, event_type } = event
      return frame(cursor, 'event:created', { event_id, stream_id, event_type })
    }
    case 'EventHandled': {
      const { event_id, stream_id, run_ids, runs, error } = event
      return frame(cursor, 'event:handled', {
        event_id,
        stream_id,
        run_ids,
        ...(runs !== undefined && { runs }),
        ...(error && { error }),
      })
    }
    case 'RunStarted': {
      const place = places.add(event)
      if (event.reclaimed) return null // its first start was reported
      const { run_id, stream_id, run_type } = event
      return frame(cursor, 'run:start', { run_id, stream_id, run_type, ...place })
    }
    case 'RunSucceeded': {
      const { run_id, stream_id, run_type, stop_time } = event
      return frame(cursor, 'run:stop', {
        run_id,
        stream_id,
        run_type,
        ...(await places.of(event)),
        stop_time,
      })
    }
    case 'RunFailed': {
      const { run_id, stream_id, run_type, stop_time, retry_at = null, error } = event
      return frame(cursor, 'run:fail', {
        run_id,
        stream_id,
        run_type,
        ...(await places.of(event)),
        stop_time,
        retry_at,
        error,
      })
    }
    case 'CallsExpired': // stored before the events are removed, so each client that lacks some receives it
      return event.up_to === undefined ? frame(cursor, 'calls:expired', { before: event.before }) : null
    case 'RunCancelled': {
      const { run_id, stream_id, run_type, stop_time } = event
      return frame(cursor, 'run:cancel', {
        run_id,
        stream_id,
        run_type,
        ...(await places.of(event)),
        stop_time,
      })
    }
    default:
      return null
  }
}
