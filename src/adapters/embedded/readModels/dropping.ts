import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { quoted } from './columns.ts'

/** Small enough not to delay requests noticeably. */
const ROWS_PER_SLICE = 500

/**
 * Drops a table and its counts in slices: dropping a million rows at once would block the
 * process for seconds. Stops at the signal; the remaining rows are dropped after the next open.
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
  db.exec(`CREATE TABLE IF NOT EXISTS ${table} (${key})`) // an interrupted drop may have removed it
  const slice = db.prepare(
    `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} ORDER BY ${key} LIMIT ${ROWS_PER_SLICE})`,
  )
  while (!signal.aborted && slice.run().changes > 0) await turn()
  if (!signal.aborted) db.exec(`DROP TABLE ${table}`)
}
