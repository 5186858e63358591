import type { EventStore } from '../../src/ports/eventStore.ts'

/** The store with some of its methods replaced. */
export const forwarding = (store: EventStore, own: Partial<EventStore>): EventStore => ({
  commits: store.commits,
  size: () => store.size(),
  append: (...args) => store.append(...args),
  read: (...args) => store.read(...args),
  subscribe: (...args) => store.subscribe(...args),
  follow: (...args) => store.follow(...args),
  consume: (...args) => store.consume(...args),
  dropGroup: (...args) => store.dropGroup(...args),
  expire: (...args) => store.expire(...args),
  isExpired: (...args) => store.isExpired(...args),
  leastNow: () => store.leastNow(),
  head: () => store.head(),
  canHaveHad: (cursor) => store.canHaveHad(cursor),
  remembered: () => store.remembered(),
  acceptLoss: () => store.acceptLoss(),
  countBetween: (...args) => store.countBetween(...args),
  isCursor: (text) => store.isCursor(text),
  close: () => store.close(),
  ...own,
})
