import type { DatabaseSync } from 'node:sqlite'
import { BoundedMap } from '../../../boundedMap.ts'
import { messageOf } from '../../../errors.ts'
import type { Recorded } from '../../../events/event.ts'
import type { StoredRow } from '../../../ports/storedLog.ts'
import { isDamage, rows } from '../sqlite.ts'
import { isIntact } from './checksum.ts'
import { cursorOf } from './cursors.ts'
import { damagedLog } from './damagedLog.ts'
import { type ParsedRow, parseRow, PARSED_ROW_LENGTH, type Remains } from './logRows.ts'
import { wantedIn, type WantedTypes } from './wantedFacts.ts'

/** `entries`: a JSON text with its checksum; damage can turn it into a value of another type. */
type LogRow = [count: number, entries: unknown]

/** The number of parsed rows that are cached for reads of old events. */
const PARSED_ROWS = 128
/** The largest size of all cached rows in characters. */
const PARSED_LENGTH = 4 << 20

/** Consecutive events of the log, without those that were removed, and the position up to which they were read. */
export interface LogPart {
  readonly events: readonly Recorded[]
  readonly remains: readonly Remains[]
  readonly upTo: number
}

/** Reads the rows of `log.db`. An error names the positions of rows that are missing or not as they were written. */
export class StoredRows {
  readonly #row
  readonly #firstAt
  readonly #firstAfter
  readonly #parsed = new BoundedMap<number, ParsedRow>(PARSED_ROWS, PARSED_LENGTH)
  #last: number

  constructor(db: DatabaseSync) {
    this.#row = rows<LogRow>(db.prepare('SELECT count, entries FROM log WHERE first = ?'))
    this.#firstAt = rows<[first: number]>(
      db.prepare('SELECT first FROM log WHERE first <= ? ORDER BY first DESC LIMIT 1'),
    )
    this.#firstAfter = rows<[first: number]>(
      db.prepare('SELECT first FROM log WHERE first > ? ORDER BY first LIMIT 1'),
    )
    const newest = this.#rowFrom(this.#firstAt.get(Number.MAX_SAFE_INTEGER)?.[0]) // later positions count from it
    this.#last = newest ? newest.first + newest.count - 1 : 0
  }

  /** The position of the newest durable event; 0 if there is none. */
  get last(): number {
    return this.#last
  }

  /** So many events were added, and are durable. */
  added(count: number): void {
    this.#last += count
  }

  /** Rows were replaced by others with the same positions. */
  replaced(changed: readonly StoredRow[]): void {
    for (const { first } of changed) this.#parsed.delete(first)
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

  /** The same for facts of some types, or all of them. Rows are not cached: nothing reads them soon again. */
  scanAfter(
    position: number,
    wanted: WantedTypes | null,
    { limit, length }: { readonly limit: number; readonly length: number },
  ): Pick<LogPart, 'events' | 'upTo'> {
    if (position >= this.#last) return { events: [], upTo: position }
    return this.#undamaged(position + 1, this.#last, () => {
      const found: Recorded[] = []
      let next = position + 1
      let read = 0
      while (next <= this.#last && next <= position + limit && read < length) {
        const row = this.rowAt(next)
        const events = wantedIn(row, wanted)
        const from = cursorOf(next)
        for (const event of events) if (event.cursor >= from) found.push(event)
        next = row.first + row.count
        read += row.text.length
      }
      return { events: found, upTo: next - 1 }
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

  /** Returns the row with a position. A row that is cached is not read: several readers follow each other closely. */
  #rowWith(position: number): ParsedRow {
    const row = this.#parsed.get(position) ?? this.#rowFrom(this.#firstAt.get(position)?.[0])
    if (row && position < row.first + row.count) return row
    throw this.#missing(position)
  }

  #missing(position: number): Error {
    const next = this.#firstAfter.get(position)?.[0] ?? this.#last + 1
    return damagedLog(position, next - 1, 'rows are missing')
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
    if (typeof text !== 'string') throw damagedLog(first, first + count - 1, 'its row is not a text')
    if (!isIntact(first, count, text))
      throw damagedLog(first, first + count - 1, 'the checksum does not match')
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
}
