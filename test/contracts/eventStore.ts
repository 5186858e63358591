import type { EventStore } from '../../src/ports/eventStore.ts'
import { appending } from './eventStore/appending.ts'
import { consuming } from './eventStore/consuming.ts'
import { following } from './eventStore/following.ts'
import { reading } from './eventStore/reading.ts'
import { retaining } from './eventStore/retaining.ts'
import { subscribing } from './eventStore/subscribing.ts'

export interface OpenEventStore {
  readonly store: EventStore
  /** Closes the store as a process that ends would, and opens it again on the same data. */
  reopen(): Promise<EventStore>
  close(): Promise<void>
}

/**
 * The rules of `ports/eventStore.ts` for every adapter. The expectations are the replies of an EventStoreDB 24.6. The
 * log may contain other events and have other users, so each test has its own environment.
 */
export const eventStoreContract = (name: string, open: () => Promise<OpenEventStore>): void => {
  appending(name, open)
  reading(name, open)
  following(name, open)
  subscribing(name, open)
  consuming(name, open)
  retaining(name, open)
}
