import type { AllStreamResolvedEvent } from '@eventstore/db-client'
import { clock } from '../../clock.ts'
import { type Cursor, type Recorded, START } from '../../events/event.ts'
import { Backoff } from '../../loops/backoff.ts'
import { Recent } from '../shared/recent.ts'
import { Wakes } from '../shared/wakes.ts'
import { type Connection, FIRST_REPLY_MS, type Generation } from './connection.ts'
import { isClientWedged, silent } from './failures.ts'
import type { Follower } from './follower.ts'
import type { Reader } from './reader.ts'
import type { StoreTime } from './storeTime.ts'
import { cursorOf, positionOf, recordedOf } from './wire.ts'

/** A subscription that is silent for this long is checked, because a paused node keeps it open. */
const SILENT_MS = 2000
const PAUSES = { firstMs: 20, longestMs: 1000 }

/**
 * The newest part of the log, from one subscription to `$all` per process. It has no filter: a filtered
 * subscription costs the server as much and does not report its progress. Readers near the end take events from
 * memory. Invariants:
 * T1: `position` passes every event of the log in order, also of other installations, and never moves back.
 * T2: all events of this installation after `floor` are in memory.
 */
export class Tail {
  readonly wakes = new Wakes()
  readonly #connection: Connection
  readonly #reader: Reader
  readonly #prefix: string
  readonly #storeTime: StoreTime
  readonly #followers = new Map<string, Set<Follower>>()
  #recent = new Recent(0)
  /** The index in memory of the newest event. */
  #last = 0
  #floor: Cursor = START
  #position: Cursor = START
  #begun: Promise<void> | undefined
  #hasBegun = false
  #waking = false
  #heardAt = 0
  readonly #woken = new Set<string>()

  constructor(
    connection: Connection,
    reader: Reader,
    { prefix, storeTime }: { readonly prefix: string; readonly storeTime: StoreTime },
  ) {
    this.#connection = connection
    this.#reader = reader
    this.#prefix = prefix
    this.#storeTime = storeTime
  }

  /** Resolves once the tail has read the end of the log, or when the store is closed or the signal aborts. */
  async begun(signal?: AbortSignal): Promise<void> {
    const begun = (this.#begun ??= this.#begin())
    if (this.#hasBegun || !signal) return begun
    const { promise: aborted, resolve } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (!signal.aborted) await Promise.race([begun, aborted])
  }

  get position(): Cursor {
    return this.#position
  }

  /** The place of the newest event. */
  get newest(): number {
    return this.#last
  }

  /** Returns the place of a reader that has read up to a cursor; undefined if it must first read the log. */
  placeAfter(cursor: Cursor): number | undefined {
    if (cursor < this.#floor) return undefined
    let place = this.#last
    for (let event = this.#recent.at(place); event && event.cursor > cursor; event = this.#recent.at(place))
      place--
    return place
  }

  /** Returns the place after a cursor, or the first place in memory. */
  nearestPlaceAfter(cursor: Cursor): number {
    return this.placeAfter(cursor < this.#floor ? this.#floor : cursor) ?? this.#last
  }

  /** Returns the next events after a place, up to `limit`; undefined if they are no longer in memory. */
  after(place: number, limit: number): Recorded[] | undefined {
    return this.#recent.after(place, limit)?.events
  }

  /** Queues every later event of a stream for the follower. Returns a function that ends this. */
  follow(stream: string, follower: Follower): () => void {
    const followers = this.#followers.get(stream) ?? new Set()
    this.#followers.set(stream, followers.add(follower))
    return () => {
      followers.delete(follower)
      if (followers.size === 0) this.#followers.delete(stream)
    }
  }

  async #begin(): Promise<void> {
    const { closed } = this.#connection
    const backoff = new Backoff(PAUSES)
    while (!closed.aborted) {
      try {
        this.#position = await this.#reader.head()
        this.#floor = this.#position
        this.#hasBegun = true
        void this.#run()
        return
      } catch {
        await backoff.pause({ signal: closed })
      }
    }
  }

  async #run(): Promise<void> {
    const { closed } = this.#connection
    const backoff = new Backoff(PAUSES)
    while (!closed.aborted) {
      const before = this.#position
      try {
        await this.#listen(this.#connection.current)
      } catch (error) {
        if (isClientWedged(error)) this.#connection.renew()
      }
      if (this.#position > before) backoff.reset()
      await backoff.pause({ signal: closed })
    }
  }

  /** Subscribes from the current position. Settles when the subscription ends. */
  async #listen({ client, gone }: Generation): Promise<void> {
    const position = positionOf(this.#position)
    const subscription = client.subscribeToAll({ fromPosition: position, requiresLeader: true })
    const began = clock.monotonic()
    this.#heardAt = began
    const watch = setInterval(() => void this.#watch(), SILENT_MS / 2)
    let unconfirmed: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        unconfirmed = setTimeout(() => {
          this.#connection.suspect(began)
          reject(silent())
        }, FIRST_REPLY_MS)
        subscription.once('confirmation', () => clearTimeout(unconfirmed))
        subscription.on('data', (resolved: AllStreamResolvedEvent) => this.#take(resolved))
        subscription.on('error', reject)
        subscription.on('end', resolve)
        subscription.on('close', resolve)
        gone.addEventListener('abort', () => resolve(), { once: true })
      })
    } finally {
      clearInterval(watch)
      clearTimeout(unconfirmed)
      subscription.removeAllListeners('data')
      subscription.on('error', () => {}) // an unhandled later error would end the process
      subscription.unsubscribe().catch(() => {})
      subscription.destroy()
    }
  }

  /** After a silence, reads the end of the log. Renews a connection that does not answer or missed events. */
  async #watch(): Promise<void> {
    const heard = this.#heardAt
    if (clock.monotonic() - heard < SILENT_MS) return
    const head = await this.#reader.head().catch(() => null)
    if (this.#heardAt !== heard) return
    if (head !== null && head <= this.#position) this.#heardAt = clock.monotonic()
    else if (head === null || clock.monotonic() - heard > 2 * SILENT_MS) this.#connection.renew()
  }

  #take({ event }: AllStreamResolvedEvent): void {
    this.#heardAt = clock.monotonic()
    this.#connection.heard(this.#heardAt)
    if (!event?.position) return
    this.#storeTime.saw(event, this.#heardAt)
    const cursor = cursorOf(event.position)
    if (cursor <= this.#position) return // T1
    const recorded = recordedOf(event, this.#prefix)
    if (recorded) this.#keep(recorded)
    this.#position = cursor
    if (this.#waking) return
    this.#waking = true
    setImmediate(() => this.#wake())
  }

  #keep(recorded: Recorded): void {
    this.#last++
    const forgotten = this.#recent.add(recorded)
    if (forgotten) this.#floor = forgotten.cursor // T2
    for (const follower of this.#followers.get(recorded.stream) ?? []) {
      follower.add(recorded, this.#recent.bytesAt(this.#last))
      this.#woken.add(recorded.stream)
    }
  }

  /** Wakes readers once for all events of one turn of the event loop. */
  #wake(): void {
    this.#waking = false
    this.wakes.wake(ALL)
    for (const stream of this.#woken) this.wakes.wake(stream)
    this.#woken.clear()
  }
}

/** The key of readers of the whole log. No stream has this name. */
export const ALL = ''
