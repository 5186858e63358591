import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { tempDir } from '../support/tempDir.ts'

/** The embedded store with its calls counted; `before` and `after` may throw to fail an append. */
export const openWatchedStore = () => {
  const store = openEventStore({ dir: tempDir() })
  const watch = {
    appends: 0,
    reads: 0,
    before: async (_append: number): Promise<void> => {},
    after: async (_append: number): Promise<void> => {},
  }
  const watched: EventStore = {
    async append(...args) {
      const append = ++watch.appends
      await watch.before(append)
      const appended = await store.append(...args)
      await watch.after(append)
      return appended
    },
    read(...args) {
      watch.reads++
      return store.read(...args)
    },
    subscribe: (options) => store.subscribe(options),
    follow: (...args) => store.follow(...args),
    consume: (...args) => store.consume(...args),
    head: () => store.head(),
    isCursor: (text) => store.isCursor(text),
    close: () => store.close(),
  }
  return { store: watched, watch }
}
