import { setTimeout as delay } from 'node:timers/promises'
import { PermanentError } from '../../errors.ts'
import { type Cursor, START } from '../../events/event.ts'
import type { EventStore } from '../../ports/eventStore.ts'

const WATCH_MS = 5000
/** A shorter log is confirmed as often, because a read that was cut short looks like one. */
const CONFIRMATIONS = 2

/**
 * Returns a loop that rejects when the log becomes shorter, because an event store was restored from a backup while this
 * node was running. Others may have made it longer again. The next start of the node compares log and read models.
 */
export const watchHead = (store: Pick<EventStore, 'head' | 'canHaveHad'>, watchMs = WATCH_MS) => {
  let highest: Cursor = START
  const isShorter = async (): Promise<boolean> => {
    const head = await store.head()
    if (head < highest || !(await store.canHaveHad(highest))) return true
    highest = head
    return false
  }
  return async (signal: AbortSignal): Promise<void> => {
    let times = 0
    while (!signal.aborted) {
      times = (await isShorter()) ? times + 1 : 0
      if (times > CONFIRMATIONS)
        throw new PermanentError(
          'internal_server_error',
          `The end of the log is missing: it ended at ${highest} before (docs/operations.md, Damage)`,
        )
      await delay(times > 0 ? watchMs / 10 : watchMs, undefined, { signal }).catch(() => {})
    }
  }
}
