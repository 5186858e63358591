import { copyFileSync, existsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { AppError, messageOf, PermanentError } from '../../../errors.ts'
import { newId } from '../../../ids.ts'
import type { StoredLog, StoredRow } from '../../../ports/storedLog.ts'
import type { Checkpointer } from '../checkpointer.ts'
import {
  checkpoint,
  closedOnFailure,
  isFaultOfFile,
  openDatabase,
  rows,
  transaction,
  unavailable,
} from '../sqlite.ts'
import { WalKeeper } from '../walKeeper.ts'
import { rowText } from './checksum.ts'
import { damagedLog } from './damagedLog.ts'
import { giveBackPages } from '../freePages.ts'
import { rowsOf } from './logRows.ts'
import { lostCommits } from './lostCommits.ts'
import { type Retention, Retentions } from './retentions.ts'
import { storedLogOf } from './storedLog.ts'
import { StoredRows } from './storedRows.ts'

/** The initial size of the WAL: the sync of a file that does not grow takes half the time. */
const WAL_BYTES = 4 << 20

/** The size from which the WAL is moved into the database; it is below the initial size of the file. */
const WAL_FULL_BYTES = 2 << 20

const PAGE_BYTES = 4096

/** The size of a write that shows whether the disk has room. */
const PROBE_BYTES = 64 << 10

/** A thread reads the log in steps that are much shorter, milliseconds. */
const READ_MS = 1000

/**
 * Opens `log.db`. Throws `unavailable` as long as the disk is full. `onLost` is called with the least position of the end that
 * the log has lost, before the only trace of it is removed.
 */
export const openLog = (
  file: string,
  checkpointer: Checkpointer,
  onLost: (position: number) => void,
): Log => {
  const wal = `${file}-wal`
  const isWalUsed = sizeOf(wal) > 0
  // SQLite deletes the WAL of a database that it has to create.
  if (sizeOf(file) === 0 && isWalUsed)
    throw new PermanentError(
      'internal_server_error',
      `${file} is ${existsSync(file) ? 'empty' : 'missing'}, but ${wal} contains its newest events: ` +
        `restore ${file}, or move ${wal} away`,
    )
  try {
    const lost = isWalUsed ? lostCommits(wal) : 0
    if (lost > 0) {
      copyFileSync(wal, `${wal}.damaged`) // SQLite overwrites what it cannot read
      onLost(lastIn(file) + lost)
    }
    const db = openDatabase(file, 'full', { shrinks: true })
    return closedOnFailure(db, () => {
      // Frames of a commit that a crash interrupted must not stay behind new ones: later, they look like lost commits.
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      return new Log(db, file, checkpointer)
    })
  } catch (error) {
    throw !(error instanceof AppError) && isFaultOfFile(error) ? unreadable(file, error) : unavailable(error)
  }
}

/** Bytes of a file; 0 if there is none. */
const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** The position of the newest event. A connection that can write would replace the WAL when it is closed, too. */
const lastIn = (file: string): number => {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const hasTable = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'log'").get() !== undefined
    return hasTable ? new StoredRows(db).last : 0 // the table can be among what was lost
  } finally {
    db.close()
  }
}

const unreadable = (file: string, error: unknown): PermanentError =>
  new PermanentError(
    'internal_server_error',
    `${file} is damaged (${messageOf(error)}): restore the log from a backup (docs/operations.md, Damage)`,
    { cause: error },
  )

/**
 * The log on disk: `log.db`. It contains complete rows of events, the id of the log, the retentions of streams, and from time
 * to time the positions of consumers. Every index can be rebuilt from it.
 */
export class Log {
  readonly id: string
  readonly retentions: Retentions
  readonly rows: StoredRows
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #insert
  readonly #replace
  readonly #consumer
  readonly #setConsumer
  readonly #wal: WalKeeper
  #written = 0
  /** Whether a commit has failed since the WAL began. */
  #hasFailed = false

  constructor(db: DatabaseSync, file: string, checkpointer: Checkpointer) {
    this.#db = db
    this.#file = file
    this.#wal = new WalKeeper(this.#db, file, checkpointer, { fullBytes: WAL_FULL_BYTES })
    createTables(this.#db)
    this.#fill(WAL_BYTES)
    this.id = identityIn(this.#db) ?? identify(this.#db, newId())
    this.retentions = new Retentions(this.#db)
    this.#insert = this.#db.prepare('INSERT INTO log VALUES (?, ?, ?)')
    this.#replace = this.#db.prepare('UPDATE log SET entries = ? WHERE first = ? AND count = ?')
    this.#consumer = rows<[position: number]>(
      this.#db.prepare('SELECT position FROM consumers WHERE name = ?'),
    )
    this.#setConsumer = this.#db.prepare('INSERT OR REPLACE INTO consumers VALUES (?, ?)')
    this.rows = new StoredRows(this.#db)
  }

  /** Bytes of its files. */
  get bytes(): number {
    return sizeOf(this.#file) + sizeOf(`${this.#file}-wal`)
  }

  /** The position of the newest durable event; 0 if there is none. */
  get last(): number {
    return this.rows.last
  }

  /**
   * Appends consecutive events from `entryOf`, and sets retentions. They are durable when it returns (I1). After an error
   * none of them is written.
   */
  append(entries: readonly string[], retentions: readonly Retention[] = []): void {
    const first = this.last + 1
    this.#writing(() => {
      const rows = rowsOf(entries)
      if (rows.length === 1 && retentions.length === 0) return this.#write(first, entries)
      this.#db.exec('BEGIN IMMEDIATE')
      let at = first
      for (const row of rows) {
        this.#write(at, row)
        at += row.length
      }
      this.retentions.write(retentions)
      this.#written += retentions.length * PAGE_BYTES
      this.#db.exec('COMMIT')
    })
    this.rows.added(entries.length)
    this.retentions.wrote(retentions)
    this.#wal.wrote(this.#written)
    this.#written = 0
  }

  /** Replaces rows by rows of the same positions with fewer events. Durable when it returns. Throws `unavailable`. */
  replace(rows: readonly StoredRow[]): void {
    this.#transaction(() => {
      for (const { first, count, text } of rows) {
        if (this.#replace.run(text, first, count).changes !== 1)
          throw damagedLog(first, first + count - 1, 'rows are missing')
        this.#written += text.length + 2 * PAGE_BYTES
      }
    })
    this.rows.replaced(rows)
    this.#wal.wrote(this.#written)
    this.#written = 0
  }

  /**
   * Gives some of the free pages of the file back to the disk; false if there are no more than it keeps. A file that an earlier
   * version created only uses them again. Throws `unavailable`.
   */
  shrink(): boolean {
    const pages = this.#writing(() => giveBackPages(this.#db))
    if (pages > 0) this.#wal.wrote(2 * pages * PAGE_BYTES)
    return pages > 0
  }

  /** The position of a consumer group that `keepConsumers` stored last; undefined if there is none. */
  consumer(group: string): number | undefined {
    return this.#consumer.get(group)?.[0]
  }

  /** The log up to now, as it is stored. */
  stored(): Omit<StoredLog, 'release'> {
    return storedLogOf(this.#db, this.last)
  }

  /** Stores the positions of consumer groups beside the events. Throws `unavailable`. */
  keepConsumers(positions: ReadonlyMap<string, number>): void {
    this.#transaction(() => {
      for (const [group, position] of positions) this.#setConsumer.run(group, position)
    })
    this.#wal.wrote(2 * PAGE_BYTES)
  }

  /** Forgets the position of a consumer group. Throws `unavailable`. */
  forgetConsumer(group: string): void {
    this.#transaction(() => this.#db.prepare('DELETE FROM consumers WHERE name = ?').run(group))
    this.#wal.wrote(2 * PAGE_BYTES)
  }

  /** Throws `unavailable` while the disk has no room. */
  probe(): void {
    this.#committing(() => (this.#hasFailed = !this.#fill(PROBE_BYTES)))
  }

  /** Leaves all events in the database file. SQLite itself would leave the newest in the WAL while a thread reads it. */
  close(): void {
    this.#wal.close()
    try {
      this.#db.exec(`PRAGMA busy_timeout=${READ_MS}`)
      if (!checkpoint(this.#db, 'TRUNCATE')) warnOfWal(this.#file, 'it is being read')
    } catch (error) {
      warnOfWal(this.#file, messageOf(error))
    }
    this.#db.close()
  }

  /**
   * Runs what commits. The frames of a commit whose sync failed stay in the WAL, and behind a shorter one they look like a lost
   * commit. So the WAL is begun anew first; a checkpoint alone does not do this for a WAL without commits. Throws `unavailable`.
   */
  #writing<T>(work: () => T): T {
    if (this.#hasFailed) this.probe()
    return this.#committing(work)
  }

  #committing<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      this.#hasFailed = true
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw unavailable(error)
    }
  }

  #transaction<T>(work: () => T): T {
    return this.#writing(() => transaction(this.#db, work))
  }

  #write(first: number, entries: readonly string[]): void {
    const text = rowText(first, entries)
    this.#insert.run(first, entries.length, text)
    this.#written += text.length + 2 * PAGE_BYTES // a row changes about two more pages
  }

  /** Writes and removes a value. The WAL and the database keep the room for it. Returns whether the next commit begins the WAL. */
  #fill(bytes: number): boolean {
    this.#db
      .exec(`CREATE TABLE IF NOT EXISTS filler (bytes BLOB); BEGIN; INSERT INTO filler VALUES (zeroblob(${bytes}));
      DELETE FROM filler; COMMIT`)
    return checkpoint(this.#db, 'RESTART')
  }
}

const warnOfWal = (file: string, reason: string): void =>
  process.emitWarning(
    `The newest events of ${file} are in ${file}-wal, because they could not be moved (${reason}); copy both files together`,
  )

export const createTables = (db: DatabaseSync): void =>
  db.exec(
    `CREATE TABLE IF NOT EXISTS log (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, entries TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS consumers (name TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS identity (log_id TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS retentions (stream TEXT PRIMARY KEY, seconds INTEGER NOT NULL) WITHOUT ROWID`,
  )

const identityIn = (db: DatabaseSync): string | undefined =>
  rows<[log_id: string]>(db.prepare('SELECT log_id FROM identity')).get()?.[0]

const identify = (db: DatabaseSync, log_id: string): string => {
  db.prepare('INSERT INTO identity VALUES (?)').run(log_id)
  return log_id
}
