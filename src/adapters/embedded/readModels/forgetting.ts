import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { rows } from '../sqlite.ts'
import { quoted } from './columns.ts'

/** Removals that are forgotten in one commit. */
const FORGOTTEN = 100

/** The most rows of an existing table that gets the index of removals, so that no start waits long for it. */
const INDEXED_ROWS = 100_000

/**
 * Prepares the statement that forgets some removals of a table up to a cursor, and creates their index. Undefined for a large
 * table of an earlier version, which has no such index: its removals are forgotten with a rebuild.
 */
export const forgettingIn = (db: DatabaseSync, name: string): StatementSync | undefined => {
  const table = quoted(name)
  const index = `${name}__removals`
  const indexes = rows<[name: string]>(db.prepare('SELECT name FROM pragma_index_list(?)')).all(name)
  if (!indexes.some(([known]) => known === index)) {
    const [last] = rows<[number | null]>(db.prepare(`SELECT max(rowid) FROM ${table}`)).get() ?? []
    if ((last ?? 0) > INDEXED_ROWS) return undefined
    db.exec(`CREATE INDEX IF NOT EXISTS ${quoted(index)} ON ${table} (cursor) WHERE gone = 1`)
  }
  return db.prepare(`DELETE FROM ${table} WHERE rowid IN
    (SELECT rowid FROM ${table} INDEXED BY ${quoted(index)} WHERE gone = 1 AND cursor <= ? LIMIT ${FORGOTTEN})`)
}
