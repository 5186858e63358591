import { openEventStoreDb } from '../../../src/adapters/eventstoredb/index.ts'
import { newId } from '../../../src/ids.ts'
import { eventStoreContract, type OpenEventStore } from '../../contracts/eventStore.ts'
import { engineUrl, reportExercised } from '../../support/engines.ts'
import { startStandIn } from '../../support/eventstoredb/index.ts'

/** Each opening has its own prefix, because the log may be shared. */
const openOn = async (url: string, after: () => Promise<void> = async () => {}): Promise<OpenEventStore> => {
  const own = new URL(url)
  own.searchParams.set('prefix', `t${newId().slice(-12)}.`)
  let store = await openEventStoreDb(own.href)
  return {
    store,
    async reopen() {
      await store.close()
      store = await openEventStoreDb(own.href)
      return store
    },
    async close() {
      await store.close()
      await after()
    },
  }
}

reportExercised('EventStoreDB stand-in')
eventStoreContract('EventStoreDB stand-in', async () => {
  const standIn = await startStandIn()
  return openOn(standIn.url, () => standIn.stop())
})

const real = engineUrl('eventStore')
if (real !== null) eventStoreContract('EventStoreDB', () => openOn(real))
