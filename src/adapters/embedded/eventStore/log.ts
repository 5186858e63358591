import { copyFileSync, existsSync, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { BoundedMap } from '../../../boundedMap.ts'
import { AppError, messageOf, PermanentError } from '../../../errors.ts'
import type { Metadata, Recorded } from '../../../events/event.ts'
import type { DomainEvent } from '../../../events/index.ts'
import { upcast } from '../../../events/upcast.ts'
import { newId } from '../../../ids.ts'
import type { StoredLog } from '../../../ports/storedLog.ts'
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
import { lostCommits } from './lostCommits.ts'
import { storedLogOf } from './storedLog.ts'

/** An event in a row. Its position is the first position of the row plus its index. */
type Entry = [
  stream: string,
  revision: number,
  id: string,
  at: string,
  event: DomainEvent,
  metadata: Metadata,
]

/** `entries`: a JSON text with its checksum; damage can turn it into a value of another type. */
type LogRow = [count: number, entries: unknown]

interface ParsedRow {
  readonly first: number
  readonly events: readonly Recorded[]
  /** Characters in the log. */
  readonly length: number
}

/**
 * One row contains up to 64 consecutive events as one JSON text: a commit then writes few pages, and a read
 * of one event parses little.
 */
const EVENTS_PER_ROW = 64

/** The initial size of the WAL: the sync of a file that does not grow takes half the time. */
const WAL_BYTES = 4 << 20

/** The size from which the WAL is moved into the database; it is below the initial size of the file. */
const WAL_FULL_BYTES = 2 << 20

const PAGE_BYTES = 4096

/** The number of parsed rows that are cached for reads of old events, and their largest size in characters. */
const PARSED_ROWS = 128
const PARSED_ROW_LENGTH = 128 << 10
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
    const db = openDatabase(file, 'full')
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

/**
 * The log on disk: `log.db`. It contains complete rows of events, the id of the log, and from time to time the
 * positions of consumers. Every index can be rebuilt from it.
 */
export class Log {
  readonly id: string
  /** The least number of events after `last` that this opening has found to be lost. */
  readonly lost: number
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #insert
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
    this.#insert = this.#db.prepare('INSERT INTO log VALUES (?, ?, ?)')
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
    this.#last = newest ? newest.first + newest.events.length - 1 : 0
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
   * Appends consecutive events from `entryOf`. They are durable when it returns (I1). After an error none of them
   * is written.
   */
  append(entries: readonly string[]): void {
    const first = this.#last + 1
    try {
      const rows = rowsOf(entries)
      if (rows.length === 1) this.#write(first, entries)
      else {
        this.#db.exec('BEGIN IMMEDIATE')
        let at = first
        for (const row of rows) {
          this.#write(at, row)
          at += row.length
        }
        this.#db.exec('COMMIT')
      }
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw unavailable(error)
    }
    this.#last += entries.length
    this.#wal.wrote(this.#written)
    this.#written = 0
  }

  /**
   * Reads at least `limit` events or `length` characters after a position, if there are as many, in complete rows.
   */
  readAfter(position: number, limit: number, length: number): Recorded[] {
    if (position >= this.#last) return []
    return this.#undamaged(position + 1, this.#last, () => {
      const events: Recorded[] = []
      let next = position + 1
      let read = 0
      while (next <= this.#last && events.length < limit && read < length) {
        const { first, events: found, length: size } = this.#rowWith(next)
        for (let at = next - first; at < found.length; at++) events.push(found[at] as Recorded)
        next = first + found.length
        read += size
      }
      return events
    })
  }

  /** Returns the event at a position of the log, and its approximate length there. */
  at(position: number): { readonly event: Recorded; readonly length: number } {
    return this.#undamaged(position, position, () => {
      const { first, events, length } = this.#rowWith(position)
      return { event: events[position - first] as Recorded, length: length / events.length }
    })
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
    if (row && position < row.first + row.events.length) return row
    const next = this.#firstAfter.get(position)?.[0] ?? this.#last + 1
    throw damagedLog(position, next - 1, 'their rows are missing')
  }

  #rowFrom(first: number | undefined): ParsedRow | undefined {
    if (first === undefined) return undefined
    const known = this.#parsed.get(first)
    if (known) return known
    const [count, entries] = this.#row.get(first) ?? [0, null]
    if (typeof entries !== 'string') throw damagedLog(first, first + count - 1, 'they are not a text')
    if (!isIntact(first, count, entries))
      throw damagedLog(first, first + count - 1, 'they do not match their checksum')
    const row = { first, events: parseRow(first, entries), length: entries.length }
    if (row.events.length !== count) throw damagedLog(first, first + count - 1, `found ${row.events.length}`)
    if (row.length <= PARSED_ROW_LENGTH) this.#parsed.set(first, row, row.length)
    return row
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
    CREATE TABLE IF NOT EXISTS identity (log_id TEXT NOT NULL)`,
  )

const identityIn = (db: DatabaseSync): string | undefined =>
  rows<[log_id: string]>(db.prepare('SELECT log_id FROM identity')).get()?.[0]

const identify = (db: DatabaseSync, log_id: string): string => {
  db.prepare('INSERT INTO identity VALUES (?)').run(log_id)
  return log_id
}

/** Divides events into rows. A row is parsed as a whole, also for one of its events. */
const rowsOf = (entries: readonly string[]): (readonly string[])[] => {
  const rows: string[][] = []
  let length = 0
  for (const entry of entries) {
    const row = rows.at(-1)
    if (!row || row.length === EVENTS_PER_ROW || length + entry.length > PARSED_ROW_LENGTH) {
      rows.push([entry])
      length = entry.length
    } else {
      row.push(entry)
      length += entry.length
    }
  }
  return rows
}

/** Converts an event to its form in the log, without the position. */
export const entryOf = ({ stream, revision, id, at, event, metadata }: Recorded): string => {
  try {
    return JSON.stringify([stream, revision, id, at, event, metadata] satisfies Entry)
  } catch (error) {
    throw new AppError('bad_request', `Expected facts that can be converted to JSON: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

const parseRow = (first: number, entries: string): Recorded[] =>
  (JSON.parse(entries) as Entry[]).map(([stream, revision, id, at, event, metadata], index) =>
    upcast({ id, stream, revision, cursor: cursorOf(first + index), at, event, metadata }),
  )
