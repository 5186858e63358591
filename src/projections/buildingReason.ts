import { type Cursor, START } from '../events/event.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Building } from './projectors.ts'

/** The reason for which a node waits for its read models: those that are incomplete, and their shares of the log. */
export const buildingReason = (
  building: readonly Building[],
  { store, head }: { store: Pick<EventStore, 'countBetween'>; head: Cursor },
): string => {
  if (building.length === 0) return 'The server is starting'
  const count = store.countBetween(START, head)
  const listed = building.map(({ name, builtTo }) => {
    const built = store.countBetween(START, builtTo)
    return count && built !== null ? `${name} (${Math.floor((100 * built) / count)} %)` : name
  })
  return `The read models are being built from the log: ${listed.join(', ')}`
}
