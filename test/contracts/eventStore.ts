import type { EventStore } from '../../src/ports/eventStore.ts'
import { appending } from './eventStore/appending.ts'
import { consuming } from './eventStore/consuming.ts'
import { following } from './eventStore/following.ts'
import { reading } from './eventStore/reading.ts'
import { subscribing } from './eventStore/subscribing.ts'

export interface OpenEventStore {
  readonly store: EventStore
  /** Closes the store as a process that ends would, and opens it again on the same data. */
  reopen(): Promise<EventStore>
  close(): Promise<void>
}

/**
 * What every adapter of `ports/eventStore.ts` keeps; the expectations are what an EventStoreDB 24.6
 * answered. The log may hold other events and have other users: each test has an environment of its own.
 */
export const eventStoreContract = (name: string, open: () => Promise<OpenEventStore>): void => {
  appending(name, open)
  reading(name, open)
  following(name, open)
  subscribing(name, open)
  consuming(name, open)
}
