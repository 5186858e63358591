import { openEventStore } from '../../../src/adapters/embedded/eventStore/index.ts'
import { tempDir } from '../../support/tempDir.ts'
import type { OpenEventStore } from '../eventStore.ts'

/** An embedded store in a directory of its own. */
export const openEmbedded = (): OpenEventStore => {
  const dir = tempDir()
  let store = openEventStore({ dir })
  return {
    store,
    async reopen() {
      await store.close()
      store = openEventStore({ dir })
      return store
    },
    close: () => store.close(),
  }
}
