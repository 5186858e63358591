import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { isFullDisk } from '../../disk/fullDisk.ts'
import { AppError, messageOf } from '../../errors.ts'

/**
 * Opens a database in WAL mode. `full`: a commit returns after its fsync; `normal`: only checkpoints sync. `shrinks`: a file
 * that is created now can give pages back to the disk.
 */
export const openDatabase = (
  file: string,
  durability: 'full' | 'normal',
  { shrinks = false }: { readonly shrinks?: boolean } = {},
): DatabaseSync => {
  const db = new DatabaseSync(file)
  return closedOnFailure(db, () => {
    if (shrinks) db.exec('PRAGMA auto_vacuum=INCREMENTAL') // has an effect only before the first page is written
    db.exec(
      `PRAGMA journal_mode=WAL; PRAGMA synchronous=${durability.toUpperCase()}; PRAGMA cache_size=-16000`,
    )
    return db
  })
}

/** Moves the WAL into the database and lets the next commit begin it anew. False while another connection reads it or moves it. */
export const checkpoint = (db: DatabaseSync, mode: 'RESTART' | 'TRUNCATE'): boolean =>
  rows<[busy: number]>(db.prepare(`PRAGMA wal_checkpoint(${mode})`)).get()?.[0] === 0

/** Prepares an opened database. It is closed if this fails, because its file may be moved or opened again. */
export const closedOnFailure = <T>(db: { close(): void }, prepare: () => T): T => {
  try {
    return prepare()
  } catch (error) {
    db.close()
    throw error
  }
}

const SQLITE_CORRUPT = 11
const SQLITE_NOTADB = 26

/** I/O errors of a read that fails each time: of the disk, of a checksum, and of a damaged file system. */
const UNREADABLE = new Set([1, 32, 33].map((detail) => 10 | (detail << 8)))

/** Whether SQLite reports damage of a file. */
export const isDamage = (error: unknown): boolean => {
  const code = codeOf(error) & 0xff // the upper bits are details
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB
}

/** Whether a part of a file is lost: it is damaged, or the disk cannot read it. */
export const isLoss = (error: unknown): boolean => isDamage(error) || UNREADABLE.has(codeOf(error))

/** The code of the error of SQLite that is the error or its cause; 0 if there is none. */
const codeOf = (error: unknown): number => {
  if (!(error instanceof Error)) return 0
  return 'errcode' in error ? Number(error.errcode) : codeOf(error.cause)
}

/** Errors of SQLite with which a file may be good: no permission, busy, no memory, read-only, I/O, disk full, not opened. */
const SURROUNDINGS = new Set([3, 5, 6, 7, 8, 10, 13, 14])

/** Whether the content of a file is at fault. Damage also shows as missing columns, or as values that are no numbers. */
export const isFaultOfFile = (error: unknown): boolean => {
  if (error instanceof AppError) return isFaultOfFile(error.cause)
  if (!(error instanceof Error)) return false
  if ('errcode' in error) return !SURROUNDINGS.has(Number(error.errcode) & 0xff)
  return !('code' in error && /^E[A-Z]+$/.test(String(error.code))) // else it is of the file system
}

/** Runs `work` in one transaction. Failures of SQLite (disk full, I/O error) become `unavailable`. */
export const transaction = <T>(db: DatabaseSync, work: () => T): T => {
  try {
    db.exec('BEGIN IMMEDIATE')
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw unavailable(error)
  }
}

export const unavailable = (error: unknown): AppError =>
  error instanceof AppError
    ? error
    : new AppError('unavailable', `The embedded store failed: ${reasonOf(error)}`, { cause: error })

/** A full disk has several errors in SQLite; operators get one of them. */
const reasonOf = (error: unknown): string =>
  isFullDisk(error) ? 'database or disk is full' : messageOf(error)

/** A statement whose rows are arrays, as its SELECT lists them: no object is built for each row. */
export interface Rows<Row extends readonly unknown[]> {
  get(...values: SQLInputValue[]): Row | undefined
  all(...values: SQLInputValue[]): Row[]
  iterate(...values: SQLInputValue[]): Iterable<Row>
}

/** The only place where rows get their type: `Row` must be what the SELECT lists. */
export const rows = <Row extends readonly unknown[]>(statement: StatementSync): Rows<Row> => {
  statement.setReturnArrays(true)
  return statement as unknown as Rows<Row>
}
