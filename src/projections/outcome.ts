import type { EventOf } from '../events/index.ts'
import type { EventStore } from '../ports/eventStore.ts'

export type Ending = EventOf<'RunSucceeded' | 'RunFailed' | 'RunCancelled'>

/**
 * Follows a stream from a revision on until the run ends there. The revision is one the caller's own
 * append returned, so nothing is missed in between. Null when the signal aborted first.
 */
export const endingOf = async (
  store: EventStore,
  run_id: string,
  { stream, after, signal }: { stream: string; after: number; signal: AbortSignal },
): Promise<Ending | null> => {
  const found = new AbortController()
  const until = AbortSignal.any([signal, found.signal])
  try {
    for await (const { events } of store.follow(stream, { after, signal: until })) {
      for (const { event } of events) {
        if (
          (event.type === 'RunSucceeded' || event.type === 'RunFailed' || event.type === 'RunCancelled') &&
          event.run_id === run_id
        ) {
          return event
        }
      }
    }
    return null
  } finally {
    found.abort()
  }
}
