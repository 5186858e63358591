import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { slices } from '../../../loops/slices.ts'
import { giveBackPages } from '../freePages.ts'
import type { WalKeeper } from '../walKeeper.ts'
import { quoted } from './columns.ts'

/** Small enough not to delay requests noticeably. */
const ROWS_PER_SLICE = 500

/** A row, or a page that is given back, changes about one or two pages. */
const PAGE_BYTES = 4096

/** A database and the WAL that its changes fill. */
export interface Kept {
  readonly db: DatabaseSync
  readonly wal: WalKeeper
}

/**
 * Drops a table and its counts in slices: dropping a million rows at once would block the
 * process for seconds. Stops at the signal; the remaining rows are dropped after the next open.
 */
export const dropSlowly = async (kept: Kept, table: string, signal: AbortSignal): Promise<void> => {
  await emptyAndDrop(kept, { table: quoted(table), key: 'rowid' }, signal)
  await emptyAndDrop(kept, { table: quoted(`${table}__counts`), key: 'facet' }, signal)
}

const emptyAndDrop = async (
  { db, wal }: Kept,
  { table, key }: { readonly table: string; readonly key: string },
  signal: AbortSignal,
): Promise<void> => {
  db.exec(`CREATE TABLE IF NOT EXISTS ${table} (${key})`) // an interrupted drop may have removed it
  const slice = db.prepare(
    `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} ORDER BY ${key} LIMIT ${ROWS_PER_SLICE})`,
  )
  while (!signal.aborted) {
    const rows = Number(slice.run().changes)
    if (rows === 0) break
    wal.wrote(rows * PAGE_BYTES)
    await wal.hasRoom()
    await turn()
  }
  if (!signal.aborted) db.exec(`DROP TABLE ${table}`)
}

/** Gives the free pages of a file back to the disk between other work. What it has not given back at the signal stays free. */
export const shrink = async ({ db, wal }: Kept, signal: AbortSignal): Promise<void> => {
  let given = 0
  for (;;) {
    await slices.take()
    if (signal.aborted || !db.isOpen) return
    const pages = giveBackPages(db)
    if (pages === 0) break
    given += pages
    wal.wrote(2 * pages * PAGE_BYTES)
    await wal.hasRoom()
  }
  if (given > 0) await wal.move()
}
