import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Recorded, START } from '../../../events/event.ts'
import { schemaOf } from '../../../events/index.ts'
import { unprocessable } from '../../../events/upcast.ts'
import type { Batch, EventStore } from '../../../ports/eventStore.ts'
import { matcherOf } from '../../shared/matching.ts'
import { readableBatch } from '../../shared/readable.ts'
import { cursorOf, positionOf } from './cursors.ts'
import { BATCH, BATCH_LENGTH } from './reader.ts'
import { StoredRows } from './storedRows.ts'

interface PresentLog extends Pick<EventStore, 'subscribe'> {
  close(): void
}

/**
 * Opens the log for a thread that reads it up to its present end. The service writes it meanwhile. `onUnknown` is called with a
 * text that names the first fact whose type this build does not know: no reader of some types gets it.
 */
export const openPresentLog = (dir: string, onUnknown: (reason: string) => void = () => {}): PresentLog => {
  const db = new DatabaseSync(join(dir, 'log.db'), { readOnly: true })
  const rows = new StoredRows(db)
  let isUnknownFound = false
  const isUnknown = (type: string): boolean => !isUnknownFound && !Object.hasOwn(schemaOf, type)
  const report = (found: Recorded): void => {
    isUnknownFound = true
    onUnknown(unprocessable(found, found.unreadable ?? '').message)
  }
  return {
    close: () => db.close(),
    async *subscribe({ after = START, signal, ...filter }): AsyncGenerator<Batch> {
      const matches = matcherOf(filter)
      const types = filter.types && new Set<string>(filter.types)
      const wanted = types ? { has: (type: string) => types.has(type) || isUnknown(type) } : null
      let position = positionOf(after)
      while (!signal.aborted) {
        const { events, upTo } = rows.scanAfter(position, wanted, { limit: BATCH, length: BATCH_LENGTH })
        position = upTo
        const caughtUp = position >= rows.last
        const unknown = isUnknownFound ? undefined : events.find(({ event }) => isUnknown(event.type))
        if (unknown) report(unknown)
        const matching = matches ? events.filter(matches) : events
        yield* readableBatch({ events: matching, cursor: cursorOf(position), caughtUp })
        if (caughtUp) return
      }
    },
  }
}
