import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** A fact as it is stored in `log.db`: stream, revision, id, time, event, metadata. */
export type StoredFact = readonly [string, number, string, string, object, object]

const PER_ROW = 64

/**
 * Writes facts to the end of an embedded log that no service has open, in the format of svc 0.1.0. They can be facts
 * that this build would neither write nor read.
 */
export const plantStored = (dataDir: string, facts: readonly StoredFact[]): void => {
  const db = new DatabaseSync(join(dataDir, 'log.db'))
  db.exec(
    'CREATE TABLE IF NOT EXISTS log (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, entries TEXT NOT NULL)',
  )
  const row = db.prepare('SELECT max(first + count) AS next FROM log').get()
  let first = Number(row?.['next'] ?? 1)
  const insert = db.prepare('INSERT INTO log VALUES (?, ?, ?)')
  for (let at = 0; at < facts.length; at += PER_ROW) {
    const some = facts.slice(at, at + PER_ROW)
    insert.run(first, some.length, JSON.stringify(some))
    first += some.length
  }
  db.close()
}
