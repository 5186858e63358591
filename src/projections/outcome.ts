import type { EventOf } from '../events/index.ts'
import type { EventStore } from '../ports/eventStore.ts'

export type Ending = EventOf<'RunSucceeded' | 'RunFailed' | 'RunCancelled'>

/**
 * Follows a stream from a revision on until the run ends there. The revision is one the caller's own
 * append returned, or one before anything that can be missed. Null when the signal aborted first. `onFact` is called
 * with the first facts that are seen.
 */
export const endingOf = async (
  store: EventStore,
  run_id: string,
  {
    stream,
    after,
    signal,
    onFact,
  }: { stream: string; after: number; signal: AbortSignal; onFact?: () => void },
): Promise<Ending | null> => {
  const found = new AbortController()
  const until = AbortSignal.any([signal, found.signal])
  try {
    for await (const { events } of store.follow(stream, { after, signal: until })) {
      if (events.length > 0) onFact?.()
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
