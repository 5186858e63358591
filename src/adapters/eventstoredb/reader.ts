import { BACKWARDS, END, type EventStoreDBClient, FORWARDS, type ResolvedEvent } from '@eventstore/db-client'
import { BoundedMap } from '../../boundedMap.ts'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { Cursor, Recorded } from '../../events/event.ts'
import { isObject } from '../../events/isObject.ts'
import { type Connection, FIRST_REPLY_MS } from './connection.ts'
import { appErrorOf, isClientWedged, isMissingStream, isNoPlace, isTombstone, silent } from './failures.ts'
import { PAGE, Portion } from './portion.ts'
import type { StoreTime } from './storeTime.ts'
import { cursorOf, positionOf, recordedOf } from './wire.ts'

/** A part of the log. */
export interface Page {
  readonly events: readonly Recorded[]
  /** The position after the page, including events of other installations. */
  readonly cursor: Cursor
  /** True if the log had no further events at the time of the read. */
  readonly last: boolean
  readonly fitting: Portion['fitting']
}

/** A part of a stream, as one read returned it. */
export interface StreamPage {
  readonly events: readonly Recorded[]
  /** The revision after the last event of the page. */
  readonly next: number
  readonly isMissing: boolean
  readonly isFull: Portion['isFull']
  readonly fitting: Portion['fitting']
}

/** The metadata of a stream, as it is stored: `$maxAge`, `$tb` and the keys of operators. */
export interface StreamMetadata {
  readonly fields: Readonly<Record<string, unknown>>
  /** The revision of its own stream. */
  readonly revision: bigint
}

interface Read extends AsyncIterable<ResolvedEvent> {
  cancel(): Promise<void>
  destroy(error?: Error): unknown
  on(event: 'error', listener: () => void): unknown
}

/** Pages that are cached for `KEPT_MS`, because readers that begin together read the same pages. */
const KEPT_PAGES = 8
const KEPT_MS = 5000

/**
 * Bounded reads: a read fails if no event arrives for `FIRST_REPLY_MS`. Every page is read to its end, because the server
 * continues a call that is abandoned.
 */
export class Reader {
  readonly #connection: Connection
  readonly #prefix: string
  readonly #storeTime: StoreTime
  readonly #pages = new BoundedMap<Cursor, Promise<Page>>(KEPT_PAGES)
  readonly #forget = setTimeout(() => this.#pages.clear(), KEPT_MS).unref()
  #heads: { asked: Promise<Cursor> | undefined; next: Promise<Cursor> | undefined } = {
    asked: undefined,
    next: undefined,
  }

  constructor(connection: Connection, prefix: string, storeTime: StoreTime) {
    this.#connection = connection
    this.#prefix = prefix
    this.#storeTime = storeTime
  }

  /**
   * Reads up to `limit` events of a stream from a revision, in one call. The server may end a read too early without an
   * error, so a short page is not the end of the stream (`wholeStream`). A full one ends at its last event that was kept.
   */
  async stream(stream: string, from: number, limit: number): Promise<StreamPage> {
    const portion = new Portion()
    let next = from
    try {
      const read = (client: EventStoreDBClient) =>
        client.readStream(this.#prefix + stream, {
          fromRevision: BigInt(from),
          direction: FORWARDS,
          maxCount: limit,
          requiresLeader: true,
        })
      for await (const { event } of this.#bounded(read)) {
        if (!event || portion.isFull) continue
        next = Number(event.revision) + 1
        portion.add(recordedOf(event, this.#prefix))
      }
    } catch (error) {
      if (!isMissingStream(error)) throw this.#failed(error)
      return { events: [], next: from, isMissing: true, isFull: false, fitting: PAGE }
    }
    const { events, isFull, fitting } = portion
    return { events, next, isMissing: false, isFull, fitting }
  }

  /**
   * Reads the revision of the last event of a stream; -1 if the stream is missing. Null if the server returned no event,
   * because all have expired or because it ended the read too early.
   */
  async last(stream: string): Promise<number | null> {
    const { event, isMissing } = await this.#newestOf(this.#prefix + stream)
    if (isMissing) return -1
    return event ? Number(event.revision) : null
  }

  /** Whether events of a stream can be gone. False also if the server ended the read of the metadata too early. */
  async expires(stream: string): Promise<boolean> {
    const { fields = {} } = (await this.metadata(stream)) ?? {}
    return '$maxAge' in fields || '$tb' in fields
  }

  /** Whether an operator has deleted a stream, or ended it for ever. */
  async isDeleted(stream: string): Promise<boolean> {
    const { hasTombstone } = await this.#newestOf(this.#prefix + stream)
    return hasTombstone || '$tb' in ((await this.metadata(stream))?.fields ?? {})
  }

  /** Reads the metadata of a stream; null if there is none, or if the server ended the read too early. */
  async metadata(stream: string): Promise<StreamMetadata | null> {
    const { event } = await this.#newestOf(`$$${this.#prefix}${stream}`)
    if (!event) return null
    const { data, revision } = event
    return { fields: isObject(data) ? data : {}, revision }
  }

  async #newestOf(name: string) {
    let newest: ResolvedEvent | undefined
    try {
      const read = (client: EventStoreDBClient) =>
        client.readStream(name, {
          fromRevision: END,
          direction: BACKWARDS,
          maxCount: 1,
          requiresLeader: true,
        })
      for await (const resolved of this.#bounded(read)) newest = resolved
    } catch (error) {
      if (isMissingStream(error))
        return { event: undefined, isMissing: true, hasTombstone: isTombstone(error) }
      throw this.#failed(error)
    }
    return { event: newest?.event, isMissing: false, hasTombstone: false }
  }

  /** Reads a page of up to `limit` events of the log after a cursor. A page before the last one never changes and is cached. */
  async log(after: Cursor, limit: number): Promise<Page> {
    this.#forget.refresh()
    const known = this.#pages.get(after)
    if (known) return known
    const asked = this.#log(after, limit)
    this.#pages.set(after, asked)
    try {
      const page = await asked
      if (page.last) this.#pages.delete(after)
      return page
    } catch (error) {
      this.#pages.delete(after)
      throw error
    }
  }

  async #log(after: Cursor, limit: number): Promise<Page> {
    const portion = new Portion()
    let cursor = after
    let seen = 0
    try {
      const read = (client: EventStoreDBClient) =>
        client.readAll({
          fromPosition: positionOf(after), // inclusive: the event at the cursor is read again
          direction: FORWARDS,
          maxCount: limit + 1,
          requiresLeader: true,
        })
      for await (const { event } of this.#bounded(read)) {
        seen++
        if (!event?.position || portion.isFull) continue
        const at = cursorOf(event.position)
        if (at <= after) continue
        cursor = at
        portion.add(recordedOf(event, this.#prefix))
      }
    } catch (error) {
      throw this.#failed(error)
    }
    const { events, isFull, fitting } = portion
    return { events, cursor, last: !isFull && seen <= limit, fitting }
  }

  /** Whether a position up to the head is that of an event, of a removed one, or of one of others. */
  async isPlace(cursor: Cursor): Promise<boolean> {
    let seen = 0
    try {
      const read = (client: EventStoreDBClient) =>
        client.readAll({
          fromPosition: positionOf(cursor),
          direction: FORWARDS,
          maxCount: 1,
          requiresLeader: true,
        })
      for await (const _ of this.#bounded(read)) seen++
    } catch (error) {
      if (isNoPlace(error)) return false
      throw this.#failed(error)
    }
    if (seen === 0) throw cutShort()
    return true
  }

  /** Reads the newest position of the log. Callers during a read share the next read. */
  head(): Promise<Cursor> {
    const heads = this.#heads
    if (!heads.asked) return this.#ask()
    heads.next ??= heads.asked.then(
      () => this.#askNext(),
      () => this.#askNext(),
    )
    return heads.next
  }

  #askNext(): Promise<Cursor> {
    this.#heads.next = undefined
    return this.#ask()
  }

  #ask(): Promise<Cursor> {
    const asked = this.#head().finally(() => {
      if (this.#heads.asked === asked) this.#heads.asked = undefined
    })
    this.#heads.asked = asked
    return asked
  }

  async #head(): Promise<Cursor> {
    let cursor: Cursor | undefined
    try {
      const read = (client: EventStoreDBClient) =>
        client.readAll({
          fromPosition: END,
          direction: BACKWARDS,
          maxCount: 1,
          requiresLeader: true,
        })
      for await (const { event } of this.#bounded(read)) {
        if (event?.position) cursor = cursorOf(event.position)
        if (event) this.#storeTime.saw(event)
      }
    } catch (error) {
      throw this.#failed(error)
    }
    // A server's log is never empty: it writes events of its own at its first start.
    if (cursor === undefined) throw cutShort()
    return cursor
  }

  async *#bounded(begin: (client: EventStoreDBClient) => Read): AsyncGenerator<ResolvedEvent> {
    if (this.#connection.closed.aborted) throw closed()
    const { client, gone } = this.#connection.current
    const read = begin(client)
    read.on('error', () => {}) // an unhandled error after the end would end the process
    const giveUp = () => read.destroy(silent())
    const timer = setTimeout(() => {
      this.#connection.suspect(clock.monotonic() - FIRST_REPLY_MS)
      giveUp()
    }, FIRST_REPLY_MS)
    gone.addEventListener('abort', giveUp, { once: true })
    try {
      for await (const resolved of read) {
        timer.refresh()
        yield resolved
      }
      this.#connection.heard()
    } finally {
      clearTimeout(timer)
      gone.removeEventListener('abort', giveUp)
      read.cancel().catch(() => {})
    }
  }

  #failed(error: unknown): AppError {
    if (this.#connection.closed.aborted) return closed()
    if (isClientWedged(error)) this.#connection.renew()
    return this.#connection.explained(appErrorOf(error))
  }
}

const cutShort = (): AppError =>
  new AppError('unavailable', 'The event store ended a read of its log too early')

export const closed = (): AppError => new AppError('unavailable', 'The event store is closed')
