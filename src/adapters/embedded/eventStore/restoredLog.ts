import { AppError } from '../../../errors.ts'
import type { StoredLog, StoredRow } from '../../../ports/storedLog.ts'
import { closedOnFailure, openDatabase, transaction } from '../sqlite.ts'
import { isIntact } from './checksum.ts'
import { createTables } from './log.ts'
import { markRestored } from './retentions.ts'

/** A new log that receives the rows of a backup in order. */
export interface RestoredLog {
  /** Durable when it returns. Throws `bad_request` for rows that are damaged or do not follow. */
  append(rows: readonly StoredRow[]): void
  /** Stores the positions of consumers and closes the log. */
  finish(consumers: StoredLog['consumers']): void
  close(): void
}

/** Creates `log.db` for a restore. Its id is given at the first start. */
export const createRestoredLog = (file: string): RestoredLog => {
  const db = openDatabase(file, 'full', { shrinks: true })
  return closedOnFailure(db, () => {
    createTables(db)
    const insert = db.prepare('INSERT INTO log VALUES (?, ?, ?)')
    let next = 1
    return {
      append: (rows) =>
        transaction(db, () => {
          for (const { first, count, text } of rows) {
            if (first !== next || !isIntact(first, count, text))
              throw new AppError(
                'bad_request',
                `The rows of the log are damaged: expected position ${next}, got ${first}, or its checksum is wrong`,
              )
            insert.run(first, count, text)
            next += count
          }
        }),
      finish(consumers) {
        transaction(db, () => {
          const set = db.prepare('INSERT OR REPLACE INTO consumers VALUES (?, ?)')
          for (const { group, position } of consumers) set.run(group, Math.min(position, next - 1))
          markRestored(db)
        })
        db.close()
      },
      close: () => db.close(),
    }
  })
}
