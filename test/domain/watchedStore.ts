import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { forwarding } from '../support/forwarding.ts'
import { tempDir } from '../support/tempDir.ts'

/** The embedded store with its calls counted; `before` and `after` may throw to fail an append. */
export const openWatchedStore = () => {
  const store = openEventStore({ dir: tempDir() })
  const watch = {
    appends: 0,
    reads: 0,
    /** The revision at which the last read began. */
    readFrom: -1,
    before: async (_append: number): Promise<void> => {},
    after: async (_append: number): Promise<void> => {},
  }
  const watched = forwarding(store, {
    async append(...args) {
      const append = ++watch.appends
      await watch.before(append)
      const appended = await store.append(...args)
      await watch.after(append)
      return appended
    },
    read(...args) {
      watch.reads++
      watch.readFrom = args[1]?.from ?? 0
      return store.read(...args)
    },
  })
  return { store: watched, watch }
}
