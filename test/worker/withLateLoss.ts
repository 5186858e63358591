import type { EventStore } from '../../src/ports/eventStore.ts'

/** A worker of the store reads that it was declared lost only after `heard`, while `isLate`. */
export const withLateLoss = (
  store: EventStore,
  heard: Promise<void>,
  isLate: () => boolean,
): Pick<EventStore, 'subscribe'> => ({
  async *subscribe(options) {
    for await (const batch of store.subscribe(options)) {
      if (isLate() && options.types?.includes('WorkerLost')) await heard
      yield batch
    }
  },
})
