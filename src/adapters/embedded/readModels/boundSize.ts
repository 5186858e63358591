import type { DatabaseSync } from 'node:sqlite'
import { freeBytes } from '../../../disk/freeBytes.ts'
import { rows } from '../sqlite.ts'

/** Two threads may write at the same time, and each may need the room again to sort an index. */
const SHARES = 4

/** Lets a file grow by its share of the room on the disk beyond `leaves` bytes. SQLite refuses more as on a full disk. */
export const boundSize = (db: DatabaseSync, dir: string, leaves: number): void => {
  const pragma = (name: string) => rows<[number]>(db.prepare(`PRAGMA ${name}`)).get()?.[0] ?? 0
  const room = Math.max(0, freeBytes(dir) - leaves) / SHARES
  db.exec(`PRAGMA max_page_count=${pragma('page_count') + Math.floor(room / pragma('page_size'))}`)
}
