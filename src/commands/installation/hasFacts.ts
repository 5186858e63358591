import { START } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import { orgIdOf } from '../orgs/createOrg.ts'
import { FIRST_ORG } from '../orgs/ensureFirstTenant.ts'

type Store = Pick<EventStore, 'read' | 'head' | 'countBetween'>

/** Whether the log has facts of this installation. A server has events of its own, and may be shared with others. */
export const hasFacts = async (store: Store): Promise<boolean> =>
  (store.countBetween(START, await store.head()) ?? 0) > 0 || hasTenant(store)

/** The first facts of a log of 0.1.0. An event store that cannot count its events may have them only of others. */
const hasTenant = async (store: Store): Promise<boolean> => {
  for await (const _ of store.read(streamOf.org(orgIdOf(FIRST_ORG)), { limit: 1 })) return true
  return false
}
