import type { DatabaseSync } from 'node:sqlite'
import { rows } from '../sqlite.ts'

/** Pages that are given back to the disk in one commit. */
const FREED = 64

/** The part of the file that stays free for new events, and its least pages: giving back all of it would repeat each day. */
const SPARE_PART = 1 / 8
const SPARE_PAGES = 4096

/** The value of `PRAGMA auto_vacuum` of a file that can give pages back. */
const INCREMENTAL = 2

/** Gives some of the free pages of a file back to the disk. Returns their number, 0 if there are no more than it keeps. */
export const giveBackPages = (db: DatabaseSync): number => {
  const pragma = (name: string) => rows<[number]>(db.prepare(`PRAGMA ${name}`)).get()?.[0] ?? 0
  const free = pragma('freelist_count')
  const spare = Math.max(SPARE_PAGES, Math.floor(pragma('page_count') * SPARE_PART))
  if (free <= spare || pragma('auto_vacuum') !== INCREMENTAL) return 0
  db.exec(`PRAGMA incremental_vacuum(${Math.min(FREED, free - spare)})`)
  return free - pragma('freelist_count')
}
