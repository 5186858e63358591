import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { messageOf } from '../../../errors.ts'
import { openDatabase, unavailable } from '../sqlite.ts'

/** A database file that could not be used: read models are rebuilt from the log (I8). */
export interface Discarded {
  readonly reason: string
  /** The new path of the file, for diagnosis. */
  readonly movedTo: string
}

/** Increased when the tables change: files of older versions are then discarded. */
const FORMAT = 1
/** Marks the file as one of svc: "svcR". */
const APPLICATION = 0x73766352

const SQLITE_CORRUPT = 11
const SQLITE_NOTADB = 26

/** Opens `<dir>/read-models.db`. A file that is unusable is moved aside and replaced by an empty one. */
export const openFile = (dir: string, onDiscarded: (discarded: Discarded) => void): DatabaseSync => {
  const file = join(dir, 'read-models.db')
  try {
    mkdirSync(dir, { recursive: true })
    if (existsSync(markerOf(file))) return renew(file, 'it is damaged', onDiscarded)
    return open(file)
  } catch (error) {
    if (!isDamage(error)) throw unavailable(error) // busy, no permission, disk full: the file may be good
    return renew(file, messageOf(error), onDiscarded)
  }
}

/** Records damage, so that the next start knows it. */
export const markerOf = (file: string): string => `${file}.damaged`

/** Whether SQLite reports damage of the file. */
export const isDamage = (error: unknown): boolean => {
  if (!(error instanceof Error) || !('errcode' in error)) return error instanceof AlienFile
  const code = Number(error.errcode) & 0xff // the upper bits are details
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB
}

class AlienFile extends Error {}

const open = (file: string): DatabaseSync => {
  const db = openDatabase(file, 'normal')
  try {
    const { user_version: format } = db.prepare('PRAGMA user_version').get() ?? {}
    const { application_id: application } = db.prepare('PRAGMA application_id').get() ?? {}
    const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() ?? {}
    const isOurs = format === FORMAT && application === APPLICATION
    if (!isOurs && tables !== 0) {
      throw new AlienFile(
        `Expected read models of format ${FORMAT}, got application ${String(application)}, format ${String(format)}`,
      )
    }
    db.exec(`PRAGMA application_id=${APPLICATION}; PRAGMA user_version=${FORMAT};
      CREATE TABLE IF NOT EXISTS collections
        (name TEXT, version INTEGER, spec TEXT NOT NULL, live INTEGER NOT NULL DEFAULT 0, checkpoint TEXT,
         PRIMARY KEY (name, version)) WITHOUT ROWID`)
    db.prepare('SELECT name, version, spec, live, checkpoint FROM collections').all()
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

const renew = (file: string, reason: string, onDiscarded: (discarded: Discarded) => void): DatabaseSync => {
  const movedTo = `${file}.unusable`
  rmSync(movedTo, { recursive: true, force: true })
  if (existsSync(file)) renameSync(file, movedTo)
  for (const companion of [`${file}-wal`, `${file}-shm`, markerOf(file)]) rmSync(companion, { force: true })
  onDiscarded({ reason, movedTo })
  return open(file)
}
