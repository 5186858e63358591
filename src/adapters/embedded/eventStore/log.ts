import { copyFileSync, existsSync, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { BoundedMap } from '../../../boundedMap.ts'
import { AppError, messageOf, PermanentError } from '../../../errors.ts'
import type { Recorded } from '../../../events/event.ts'
import { newId } from '../../../ids.ts'
import type { StoredLog, StoredRow } from '../../../ports/storedLog.ts'
import type { Checkpointer } from '../checkpointer.ts'
import {
  closedOnFailure,
  isDamage,
  isFaultOfFile,
  openDatabase,
  rows,
  transaction,
  unavailable,
} from '../sqlite.ts'
import { WalKeeper } from '../walKeeper.ts'
import { isIntact, rowText } from './checksum.ts'
import { cursorOf } from './cursors.ts'
import { damagedLog } from './damagedLog.ts'
import { giveBackPages } from './freePages.ts'
import { type ParsedRow, parseRow, PARSED_ROW_LENGTH, type Remains, rowsOf } from './logRows.ts'
import { lostCommits } from './lostCommits.ts'
import { type Retention, Retentions } from './retentions.ts'
import { storedLogOf } from './storedLog.ts'

/** `entries`: a JSON text with its checksum; damage can turn it into a value of another type. */
type LogRow = [count: number, entries: unknown]

/** The initial size of the WAL: the sync of a file that does not grow takes half the time. */
const WAL_BYTES = 4 << 20

/** The size from which the WAL is moved into the database; it is below the initial size of the file. */
const WAL_FULL_BYTES = 2 << 20

const PAGE_BYTES = 4096

/** The number of parsed rows that are cached for reads of old events. */
const PARSED_ROWS = 128
/** The largest size of all cached rows in characters. */
const PARSED_LENGTH = 4 << 20

/** The size of a write that shows whether the disk has room. */
const PROBE_BYTES = 64 << 10

/** Opens `log.db`. Throws `unavailable` as long as the disk is full. */
export const openLog = (file: string, checkpointer: Checkpointer): Log => {
  const wal = `${file}-wal`
  const isWalUsed = existsSync(wal) && statSync(wal).size > 0
  // SQLite deletes the WAL of a database that it has to create.
  if (!existsSync(file) && isWalUsed)
    throw new PermanentError(
      'internal_server_error',
      `${file} is missing, but ${wal} contains its newest events: restore ${file}, or move ${wal} away`,
    )
  try {
    const lost = isWalUsed ? lostCommits(wal) : 0
    if (lost > 0) copyFileSync(wal, `${wal}.damaged`) // SQLite overwrites what it cannot read
    const db = openDatabase(file, 'full', { shrinks: true })
    return closedOnFailure(db, () => {
      // Frames of a commit that a crash interrupted must not stay behind new ones: later, they look like lost commits.
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      return new Log(db, file, { checkpointer, lost })
    })
  } catch (error) {
    throw !(error instanceof AppError) && isFaultOfFile(error) ? unreadable(file, error) : unavailable(error)
  }
}

const unreadable = (file: string, error: unknown): PermanentError =>
  new PermanentError(
    'internal_server_error',
    `${file} is damaged (${messageOf(error)}): restore the log from a backup (docs/operations.md, Damage)`,
    { cause: error },
  )

/** Consecutive events of the log, without those that were removed, and the position up to which they were read. */
export interface LogPart {
  readonly events: readonly Recorded[]
  readonly remains: readonly Remains[]
  readonly upTo: number
}

/**
 * The log on disk: `log.db`. It contains complete rows of events, the id of the log, the retentions of streams, and from time
 * to time the positions of consumers. Every index can be rebuilt from it.
 */
export class Log {
  readonly id: string
  /** The least number of events after `last` that this opening has found to be lost. */
  readonly lost: number
  readonly retentions: Retentions
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #insert
  readonly #replace
  readonly #row
  readonly #firstAt
  readonly #firstAfter
  readonly #consumer
  readonly #setConsumer
  readonly #parsed = new BoundedMap<number, ParsedRow>(PARSED_ROWS, PARSED_LENGTH)
  readonly #wal: WalKeeper
  #last: number
  #written = 0

  constructor(
    db: DatabaseSync,
    file: string,
    { checkpointer, lost }: { readonly checkpointer: Checkpointer; readonly lost: number },
  ) {
    this.#db = db
    this.#file = file
    this.lost = lost
    this.#wal = new WalKeeper(this.#db, file, checkpointer, { fullBytes: WAL_FULL_BYTES })
    createTables(this.#db)
    this.#fill(WAL_BYTES)
    this.id = identityIn(this.#db) ?? identify(this.#db, newId())
    this.retentions = new Retentions(this.#db)
    this.#insert = this.#db.prepare('INSERT INTO log VALUES (?, ?, ?)')
    this.#replace = this.#db.prepare('UPDATE log SET entries = ? WHERE first = ? AND count = ?')
    this.#row = rows<LogRow>(this.#db.prepare('SELECT count, entries FROM log WHERE first = ?'))
    this.#firstAt = rows<[first: number]>(
      this.#db.prepare('SELECT first FROM log WHERE first <= ? ORDER BY first DESC LIMIT 1'),
    )
    this.#firstAfter = rows<[first: number]>(
      this.#db.prepare('SELECT first FROM log WHERE first > ? ORDER BY first LIMIT 1'),
    )
    this.#consumer = rows<[position: number]>(
      this.#db.prepare('SELECT position FROM consumers WHERE name = ?'),
    )
    this.#setConsumer = this.#db.prepare('INSERT OR REPLACE INTO consumers VALUES (?, ?)')
    const newest = this.#rowFrom(this.#firstAt.get(Number.MAX_SAFE_INTEGER)?.[0]) // later positions count from it
    this.#last = newest ? newest.first + newest.count - 1 : 0
  }

  /** Bytes of its files. */
  get bytes(): number {
    const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
    return sizeOf(this.#file) + sizeOf(`${this.#file}-wal`)
  }

  /** The position of the newest durable event; 0 if there is none. */
  get last(): number {
    return this.#last
  }

  /**
   * Appends consecutive events from `entryOf`, and sets retentions. They are durable when it returns (I1). After an error
   * none of them is written.
   */
  append(entries: readonly string[], retentions: readonly Retention[] = []): void {
    const first = this.#last + 1
    try {
      const rows = rowsOf(entries)
      if (rows.length === 1 && retentions.length === 0) this.#write(first, entries)
      else {
        this.#db.exec('BEGIN IMMEDIATE')
        let at = first
        for (const row of rows) {
          this.#write(at, row)
          at += row.length
        }
        this.retentions.write(retentions)
        this.#written += retentions.length * PAGE_BYTES
        this.#db.exec('COMMIT')
      }
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw unavailable(error)
    }
    this.#last += entries.length
    this.retentions.wrote(retentions)
    this.#wal.wrote(this.#written)
    this.#written = 0
  }

  /**
   * Reads at least `limit` positions or `length` characters after a position, if there are as many, in complete rows.
   */
  readAfter(position: number, limit: number, length: number): LogPart {
    if (position >= this.#last) return { events: [], remains: [], upTo: position }
    return this.#undamaged(position + 1, this.#last, () => {
      const events: Recorded[] = []
      const remains: Remains[] = []
      let next = position + 1
      let read = 0
      while (next <= this.#last && next <= position + limit && read < length) {
        const row = this.#rowWith(next)
        const from = cursorOf(next)
        for (const event of row.events) if (event.cursor >= from) events.push(event)
        for (const left of row.remains) if (left.cursor >= from) remains.push(left)
        next = row.first + row.count
        read += row.length
      }
      return { events, remains, upTo: next - 1 }
    })
  }

  /** Returns the event at a position of the log, and its approximate length there; null if it was removed. */
  at(position: number): { readonly event: Recorded; readonly length: number } | null {
    return this.#undamaged(position, position, () => {
      const { first, count, events, length } = this.#rowWith(position)
      const cursor = cursorOf(position)
      const event =
        events.length === count ? events[position - first] : events.find((each) => each.cursor === cursor)
      return event ? { event, length: length / events.length } : null
    })
  }

  /** Whether an event, or what is left of one, is at a position. */
  has(position: number): boolean {
    return this.#undamaged(position, position, () => {
      const { events, remains } = this.#rowWith(position)
      const cursor = cursorOf(position)
      return [...events, ...remains].some((each) => each.cursor === cursor)
    })
  }

  /** Returns the row with a position as it is stored. */
  rowAt(position: number): StoredRow {
    return this.#undamaged(position, position, () => {
      const first = this.#firstAt.get(position)?.[0]
      const row = first === undefined ? undefined : this.#stored(first)
      if (row && position < row.first + row.count) return row
      throw this.#missing(position)
    })
  }

  /** Replaces rows by rows of the same positions with fewer events. Durable when it returns. Throws `unavailable`. */
  replace(rows: readonly StoredRow[]): void {
    transaction(this.#db, () => {
      for (const { first, count, text } of rows) {
        if (this.#replace.run(text, first, count).changes !== 1)
          throw damagedLog(first, first + count - 1, 'their rows are missing')
        this.#written += text.length + 2 * PAGE_BYTES
      }
    })
    for (const { first } of rows) this.#parsed.delete(first)
    this.#wal.wrote(this.#written)
    this.#written = 0
  }

  /**
   * Gives some of the free pages of the file back to the disk; false if there are no more than it keeps. A file that an earlier
   * version created only uses them again. Throws `unavailable`.
   */
  shrink(): boolean {
    try {
      const pages = giveBackPages(this.#db)
      if (pages > 0) this.#wal.wrote(2 * pages * PAGE_BYTES)
      return pages > 0
    } catch (error) {
      throw unavailable(error)
    }
  }

  /** The position of a consumer group that `keepConsumers` stored last; undefined if there is none. */
  consumer(group: string): number | undefined {
    return this.#consumer.get(group)?.[0]
  }

  /** The log up to now, as it is stored. */
  stored(): StoredLog {
    return storedLogOf(this.#db, this.#last)
  }

  /** Stores the positions of consumer groups beside the events. Throws `unavailable`. */
  keepConsumers(positions: ReadonlyMap<string, number>): void {
    transaction(this.#db, () => {
      for (const [group, position] of positions) this.#setConsumer.run(group, position)
    })
    this.#wal.wrote(2 * PAGE_BYTES)
  }

  /** Forgets the position of a consumer group. Throws `unavailable`. */
  forgetConsumer(group: string): void {
    transaction(this.#db, () => this.#db.prepare('DELETE FROM consumers WHERE name = ?').run(group))
    this.#wal.wrote(2 * PAGE_BYTES)
  }

  /** Throws `unavailable` while the disk has no room. */
  probe(): void {
    try {
      this.#fill(PROBE_BYTES)
    } catch (error) {
      throw unavailable(error)
    }
  }

  close(): void {
    this.#wal.close()
    this.#db.close()
  }

  /** Returns the row with a position. A row that is cached is not read: several readers follow each other closely. */
  #rowWith(position: number): ParsedRow {
    const row = this.#parsed.get(position) ?? this.#rowFrom(this.#firstAt.get(position)?.[0])
    if (row && position < row.first + row.count) return row
    throw this.#missing(position)
  }

  #missing(position: number): Error {
    const next = this.#firstAfter.get(position)?.[0] ?? this.#last + 1
    return damagedLog(position, next - 1, 'their rows are missing')
  }

  #rowFrom(first: number | undefined): ParsedRow | undefined {
    if (first === undefined) return undefined
    const known = this.#parsed.get(first)
    if (known) return known
    const { count, text } = this.#stored(first)
    const row = parseRow(first, text)
    if (row.count !== count) throw damagedLog(first, first + count - 1, `found ${row.count}`)
    if (row.length <= PARSED_ROW_LENGTH) this.#parsed.set(first, row, row.length)
    return row
  }

  /** Returns the row that begins with a position, without its checksum being wrong. */
  #stored(first: number): StoredRow {
    const [count, text] = this.#row.get(first) ?? [0, null]
    if (typeof text !== 'string') throw damagedLog(first, first + count - 1, 'they are not a text')
    if (!isIntact(first, count, text))
      throw damagedLog(first, first + count - 1, 'they do not match their checksum')
    return { first, count, text }
  }

  /** Runs a read. An error of SQLite or of the parser becomes one that names the positions that were read. */
  #undamaged<T>(first: number, last: number, read: () => T): T {
    try {
      return read()
    } catch (error) {
      if (isDamage(error) || error instanceof SyntaxError)
        throw damagedLog(first, last, messageOf(error), error)
      throw error
    }
  }

  #write(first: number, entries: readonly string[]): void {
    const text = rowText(first, entries)
    this.#insert.run(first, entries.length, text)
    this.#written += text.length + 2 * PAGE_BYTES // a row changes about two more pages
  }

  /** Writes and removes a value. The WAL and the database keep the room for it. */
  #fill(bytes: number): void {
    try {
      this.#db
        .exec(`CREATE TABLE IF NOT EXISTS filler (bytes BLOB); BEGIN; INSERT INTO filler VALUES (zeroblob(${bytes}));
        DELETE FROM filler; COMMIT; PRAGMA wal_checkpoint(RESTART)`)
    } finally {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
    }
  }
}

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
