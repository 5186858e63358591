import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { START } from '../../../events/event.ts'
import type { Batch, EventStore } from '../../../ports/eventStore.ts'
import { matcherOf } from '../../shared/matching.ts'
import { readableBatch } from '../../shared/readable.ts'
import { cursorOf, positionOf } from './cursors.ts'
import { BATCH, BATCH_LENGTH } from './reader.ts'
import { StoredRows } from './storedRows.ts'

interface PresentLog extends Pick<EventStore, 'subscribe'> {
  close(): void
}

/** Opens the log for a thread that reads it up to its present end. The service writes it meanwhile. */
export const openPresentLog = (dir: string): PresentLog => {
  const db = new DatabaseSync(join(dir, 'log.db'), { readOnly: true })
  const rows = new StoredRows(db)
  return {
    close: () => db.close(),
    async *subscribe({ after = START, signal, ...filter }): AsyncGenerator<Batch> {
      const matches = matcherOf(filter)
      const wanted = filter.types ? new Set<string>(filter.types) : null
      let position = positionOf(after)
      while (!signal.aborted) {
        const { events, upTo } = rows.scanAfter(position, wanted, { limit: BATCH, length: BATCH_LENGTH })
        position = upTo
        const caughtUp = position >= rows.last
        const matching = matches ? events.filter(matches) : events
        yield* readableBatch({ events: matching, cursor: cursorOf(position), caughtUp })
        if (caughtUp) return
      }
    },
  }
}
