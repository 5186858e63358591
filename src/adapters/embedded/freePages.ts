import type { DatabaseSync } from 'node:sqlite'
import { isFaultOfFile, rows } from './sqlite.ts'

/** Pages that are given back to the disk in one commit. */
const FREED = 64

/** The part of the file that stays free for new content, and its least pages: giving back all of it would repeat each day. */
const SPARE_PART = 1 / 8
const SPARE_PAGES = 4096

/** The value of `PRAGMA auto_vacuum` of a file that can give pages back. */
const INCREMENTAL = 2

/** Pages with content of a file that is written anew at once: 32 MiB. */
const REWRITTEN_PAGES = 8192

const pragma = (db: DatabaseSync, name: string): number =>
  rows<[number]>(db.prepare(`PRAGMA ${name}`)).get()?.[0] ?? 0

/** Gives some of the free pages of a file back to the disk. Returns their number, 0 if there are no more than it keeps. */
export const giveBackPages = (db: DatabaseSync): number => {
  const free = pragma(db, 'freelist_count')
  const spare = Math.max(SPARE_PAGES, Math.floor(pragma(db, 'page_count') * SPARE_PART))
  if (free <= spare || pragma(db, 'auto_vacuum') !== INCREMENTAL) return 0
  db.exec(`PRAGMA incremental_vacuum(${Math.min(FREED, free - spare)})`)
  return free - pragma(db, 'freelist_count')
}

/**
 * Lets a file that an earlier version created give pages back. SQLite writes it anew for that, so one with much content stays
 * as it is. So does one for which there is no room.
 */
export const rewriteSmall = (db: DatabaseSync): void => {
  if (pragma(db, 'auto_vacuum') === INCREMENTAL) return
  if (pragma(db, 'page_count') - pragma(db, 'freelist_count') > REWRITTEN_PAGES) return
  try {
    db.exec(
      'PRAGMA temp_store=MEMORY; PRAGMA auto_vacuum=INCREMENTAL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)',
    )
  } catch (error) {
    if (isFaultOfFile(error)) throw error
  } finally {
    db.exec('PRAGMA temp_store=DEFAULT')
  }
}
