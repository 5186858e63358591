import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { eventStoreContract } from '../contracts/eventStore.ts'
import { tempDir } from '../support/tempDir.ts'

eventStoreContract('embedded', async () => {
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
})
