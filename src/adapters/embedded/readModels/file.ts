import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { AlienFile, type OnDiscarded, openDisposable, renew } from '../disposableFile.ts'
import { rewriteSmall } from '../freePages.ts'
import { closedOnFailure, openDatabase } from '../sqlite.ts'

/** Written into the file. svc 0.1.0 discards it: it would read the newest version, which it does not keep up to date. */
const FORMAT = 2
/** The same, with side files: the builds before them discard it, because they would not find the documents. */
const FORMAT_WITH_SIDES = 3
/** Formats whose tables this build can use. */
const READABLE = [1, FORMAT, FORMAT_WITH_SIDES]
/** Marks the file as one of svc: "svcR". */
const APPLICATION = 0x73766352

export const fileIn = (dir: string): string => join(dir, 'read-models.db')

/** Opens `<dir>/read-models.db`. A file that is unusable is moved aside and replaced by an empty one. */
export const openFile = (dir: string, onDiscarded: OnDiscarded): DatabaseSync =>
  openDisposable(fileIn(dir), open, onDiscarded)

/** Replaces `<dir>/read-models.db`, which no one uses, by an empty one. */
export const renewFile = (dir: string, reason: string, onDiscarded: OnDiscarded): DatabaseSync =>
  renew(fileIn(dir), open, reason, onDiscarded)

const open = (file: string): DatabaseSync => {
  const db = openDatabase(file, 'normal', { shrinks: true })
  return closedOnFailure(db, () => {
    const { user_version: format } = db.prepare('PRAGMA user_version').get() ?? {}
    const { application_id: application } = db.prepare('PRAGMA application_id').get() ?? {}
    const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() ?? {}
    const isOurs = READABLE.includes(Number(format)) && application === APPLICATION
    if (!isOurs && tables !== 0) {
      throw new AlienFile(
        `Expected read models of format ${READABLE.join(' or ')}, got application ${String(application)}, format ${String(format)}`,
      )
    }
    rewriteSmall(db)
    const next = Math.max(Number(format), FORMAT)
    db.exec(`PRAGMA application_id=${APPLICATION}; PRAGMA user_version=${next};
      CREATE TABLE IF NOT EXISTS collections
        (name TEXT, version INTEGER, spec TEXT NOT NULL, checkpoint TEXT, stored_as TEXT,
         PRIMARY KEY (name, version)) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS replaced (stored_as TEXT PRIMARY KEY) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS identity (log_id TEXT NOT NULL)`)
    const columns = db.prepare('PRAGMA table_info(collections)').all()
    const added = { stored_as: 'TEXT', side: 'TEXT', is_filling: 'INTEGER NOT NULL DEFAULT 0' }
    for (const [column, type] of Object.entries(added))
      if (!columns.some(({ name }) => name === column))
        db.exec(`ALTER TABLE collections ADD COLUMN ${column} ${type}`)
    db.exec(`UPDATE collections SET stored_as = name || '__v' || version WHERE stored_as IS NULL`)
    db.prepare('SELECT name, version, spec, checkpoint FROM collections').all()
    db.prepare('SELECT log_id FROM identity').all()
    return db
  })
}

/** Records that the file has side files. */
export const markSides = (db: DatabaseSync): void => db.exec(`PRAGMA user_version=${FORMAT_WITH_SIDES}`)
