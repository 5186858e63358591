import { clock } from '../clock.ts'
import type { EventStore } from '../ports/eventStore.ts'

/*
 * The clock of one node may be wrong. So a period that protects data begins at the later one of two clocks, that of this
 * node and that of the event store, and is over only when both have passed its end.
 */
type StoreClock = Pick<EventStore, 'leastNow'>

/** The time for the beginning of a period, milliseconds since 1970. */
export const laterNow = (store: StoreClock): number => Math.max(clock.now(), store.leastNow())

/** The time for the end of a period, milliseconds since 1970. `now`: the time on the clock of this node. */
export const earlierNow = (store: StoreClock, now = clock.now()): number => Math.min(now, store.leastNow())
