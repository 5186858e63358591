import { type Cursor, START } from '../events/event.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Building } from './projectors.ts'

/** A read model that is being built, and its share of the log; null if the event store cannot count events. */
export interface BuildingShare {
  readonly name: string
  readonly percent: number | null
}

export const buildingShares = (
  building: readonly Building[],
  { store, head }: { store: Pick<EventStore, 'countBetween'>; head: Cursor },
): readonly BuildingShare[] => {
  const count = store.countBetween(START, head)
  return building.map(({ name, builtTo }) => {
    const built = store.countBetween(START, builtTo)
    return { name, percent: count && built !== null ? Math.floor((100 * built) / count) : null }
  })
}

/** The reason for which a node waits for its read models: those that are incomplete, and their shares of the log. */
export const buildingReason = (shares: readonly BuildingShare[]): string => {
  if (shares.length === 0) return 'The server is starting'
  const listed = shares.map(({ name, percent }) => (percent === null ? name : `${name} (${percent} %)`))
  return `The read models are being built from the log: ${listed.join(', ')}`
}
