import type { Recorded } from '../../../src/events/event.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'

export interface Gathered<T> {
  readonly items: T[]
  /** Resolves when the iterator has ended, rejects with what it threw. */
  readonly ended: Promise<void>
  /** Aborts and waits for the end. */
  stop(): Promise<void>
}

/** Reads an endless iterable in the background into `items`, until `stop`. */
export const gather = <T>(iterate: (signal: AbortSignal) => AsyncIterable<T>): Gathered<T> => {
  const items: T[] = []
  const stopping = new AbortController()
  const ended = (async () => {
    for await (const item of iterate(stopping.signal)) items.push(item)
  })()
  ended.catch(() => {}) // a test that cares awaits it
  return {
    items,
    ended,
    async stop() {
      stopping.abort()
      await ended
    },
  }
}

export const eventsOf = (batches: readonly { readonly events: readonly Recorded[] }[]): Recorded[] =>
  batches.flatMap(({ events }) => events)

/** Everything that is stored, in the order of the log. */
export const wholeLog = async (store: EventStore): Promise<Recorded[]> => {
  const all: Recorded[] = []
  for await (const { events, caughtUp } of store.subscribe({ signal: new AbortController().signal })) {
    all.push(...events)
    if (caughtUp) return all
  }
  return all
}
