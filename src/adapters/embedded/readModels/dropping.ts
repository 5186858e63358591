import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { quoted } from './columns.ts'

/** Small enough that a request waiting behind a slice does not notice. */
const ROWS_PER_SLICE = 500

/**
 * Drops a table with its counts, a little at a time: dropping a million rows at once would hold up the
 * process for seconds. Stops at the signal; what is left is dropped after the next open.
 */
export const dropSlowly = async (db: DatabaseSync, table: string, signal: AbortSignal): Promise<void> => {
  await emptyAndDrop(db, quoted(table), 'rowid', signal)
  await emptyAndDrop(db, quoted(`${table}__counts`), 'facet', signal)
}

const emptyAndDrop = async (
  db: DatabaseSync,
  table: string,
  key: string,
  signal: AbortSignal,
): Promise<void> => {
  db.exec(`CREATE TABLE IF NOT EXISTS ${table} (${key})`) // gone already when an earlier drop was cut short
  const slice = db.prepare(
    `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} ORDER BY ${key} LIMIT ${ROWS_PER_SLICE})`,
  )
  while (!signal.aborted && slice.run().changes > 0) await turn()
  if (!signal.aborted) db.exec(`DROP TABLE ${table}`)
}
