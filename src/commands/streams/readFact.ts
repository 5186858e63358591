import type { Recorded } from '../../events/event.ts'
import type { EventStore } from '../../ports/eventStore.ts'

/** Reads the fact at a revision of a stream. Resolves with null if there is none, or if it has expired. */
export const readFact = async (
  store: Pick<EventStore, 'read'>,
  stream: string,
  revision: number,
): Promise<Recorded | null> => {
  for await (const recorded of store.read(stream, { from: revision, limit: 1 }))
    return recorded.revision === revision ? recorded : null // a read skips what has expired
  return null
}
