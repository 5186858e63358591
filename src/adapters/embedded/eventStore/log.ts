import type { DatabaseSync } from 'node:sqlite'
import { BoundedMap } from '../../../boundedMap.ts'
import { AppError, messageOf } from '../../../errors.ts'
import type { Metadata, Recorded } from '../../../events/event.ts'
import type { DomainEvent } from '../../../events/index.ts'
import { upcast } from '../../../events/upcast.ts'
import type { Checkpointer } from '../checkpointer.ts'
import { openDatabase, rows, unavailable } from '../sqlite.ts'
import { WalKeeper } from '../walKeeper.ts'
import { cursorOf } from './cursors.ts'

/** An event in a row. Its position is the first position of the row plus its index. */
type Entry = [
  stream: string,
  revision: number,
  id: string,
  at: string,
  event: DomainEvent,
  metadata: Metadata,
]

type LogRow = [first: number, entries: string]

/**
 * One row contains up to 64 consecutive events as one JSON text: a commit then writes few pages, and a read
 * of one event parses little.
 */
const EVENTS_PER_ROW = 64

/** The initial size of the WAL: the sync of a file that does not grow takes half the time. */
const WAL_BYTES = 4 << 20

/** The size from which the WAL is moved into the database; it is below the initial size of the file. */
const WAL_FULL_BYTES = 2 << 20

/** The number of parsed rows that are cached for reads of old events, and their largest size in characters. */
const PARSED_ROWS = 128
const PARSED_ROW_LENGTH = 128 << 10

/** The log on disk: `log.db`. It contains only complete rows of events; every index can be rebuilt from it. */
export class Log {
  readonly #db: DatabaseSync
  readonly #insert
  readonly #rowAt
  readonly #rowsFrom
  readonly #parsed = new BoundedMap<number, Recorded[]>(PARSED_ROWS)
  readonly #wal: WalKeeper
  #last: number
  #written = 0

  constructor(file: string, checkpointer: Checkpointer) {
    this.#db = openDatabase(file, 'full')
    this.#wal = new WalKeeper(this.#db, file, checkpointer, { fullBytes: WAL_FULL_BYTES })
    this.#db.exec(
      `CREATE TABLE IF NOT EXISTS log (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, entries TEXT NOT NULL)`,
    )
    this.#growWal()
    this.#insert = this.#db.prepare('INSERT INTO log VALUES (?, ?, ?)')
    this.#rowAt = rows<LogRow>(
      this.#db.prepare('SELECT first, entries FROM log WHERE first <= ? ORDER BY first DESC LIMIT 1'),
    )
    this.#rowsFrom = rows<LogRow>(
      this.#db.prepare('SELECT first, entries FROM log WHERE first >= ? ORDER BY first'),
    )
    const row = this.#db
      .prepare('SELECT first + count - 1 AS last FROM log ORDER BY first DESC LIMIT 1')
      .get()
    this.#last = Number(row?.['last'] ?? 0)
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
    const events: Recorded[] = []
    let read = 0
    const holding = this.#rowAt.get(position + 1)
    if (!holding) return events
    for (const [first, entries] of this.#rowsFrom.iterate(holding[0])) {
      for (const event of this.#parse(first, entries)) if (Number(event.cursor) > position) events.push(event)
      read += entries.length
      if (events.length >= limit || read >= length) break
    }
    return events
  }

  /** Returns the event at a position of the log, and its approximate length there. */
  at(position: number): { readonly event: Recorded; readonly length: number } {
    const row = this.#rowAt.get(position)
    if (!row) throw unavailable(new Error(`no event at position ${position}`))
    const [first, entries] = row
    const events = this.#parse(first, entries)
    const event = events[position - first]
    if (!event) throw unavailable(new Error(`no event at position ${position}`))
    return { event, length: entries.length / events.length }
  }

  close(): void {
    this.#wal.close()
    this.#db.close()
  }

  /** Caches parsed rows, because several readers read the same part of the log within a short time. */
  #parse(first: number, entries: string): Recorded[] {
    let events = this.#parsed.get(first)
    if (!events) {
      events = parseRow(first, entries)
      if (entries.length <= PARSED_ROW_LENGTH) this.#parsed.set(first, events)
    }
    return events
  }

  #write(first: number, entries: readonly string[]): void {
    const text = `[${entries.join(',')}]`
    this.#insert.run(first, entries.length, text)
    this.#written += text.length + 8192 // a row changes about two more pages
  }

  #growWal(): void {
    this.#db
      .exec(`CREATE TABLE IF NOT EXISTS filler (bytes BLOB); BEGIN; INSERT INTO filler VALUES (zeroblob(${WAL_BYTES}));
      DELETE FROM filler; COMMIT; PRAGMA wal_checkpoint(RESTART)`)
  }
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
