import { openEventStoreDb } from '../../../src/adapters/eventstoredb/index.ts'
import { newId } from '../../../src/ids.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { startStandIn } from '../../support/eventstoredb/index.ts'
import { until } from '../../support/until.ts'
import type { OpenEventStore } from '../eventStore.ts'

/** Opens the adapter. A slow machine may need more than the 3 s in which a server must answer it. */
export const openSurely = (url: string): Promise<EventStore> => until(() => openEventStoreDb(url))

/** The adapter on a server. Each opening has its own prefix, because the log may be shared. */
export const openOn = async (
  url: string,
  after: () => Promise<void> = async () => {},
): Promise<OpenEventStore> => {
  const own = new URL(url)
  own.searchParams.set('prefix', `t${newId().slice(-12)}.`)
  let store = await openSurely(own.href)
  return {
    store,
    async reopen() {
      await store.close()
      store = await openSurely(own.href)
      return store
    },
    async close() {
      await store.close()
      await after()
    },
  }
}

/** The adapter on a stand-in of its own. */
export const openOnStandIn = async (): Promise<OpenEventStore> => {
  const standIn = await startStandIn()
  return openOn(standIn.url, () => standIn.stop())
}
