import { setTimeout as delay } from 'node:timers/promises'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { AppError } from '../../errors.ts'
import { type Cursor, type NewEvent, type Recorded, START } from '../../events/event.ts'
import { jittered } from '../../loops/backoff.ts'
import type {
  Consuming,
  Appended,
  Batch,
  Delivery,
  EventStore,
  Expected,
  Filter,
} from '../../ports/eventStore.ts'
import { readable } from '../../events/upcast.ts'
import type { Histogram } from '../../ports/histogram.ts'
import { matcherOf } from '../shared/matching.ts'
import { readableBatch, readableStreamBatch } from '../shared/readable.ts'
import { type Address, parseAddress } from './address.ts'
import { Appender } from './appender.ts'
import { Connection } from './connection.ts'
import { appErrorOf, isDenied } from './failures.ts'
import { EndCheck } from './endCheck.ts'
import { Follower } from './follower.ts'
import { setRetention } from './setRetention.ts'
import { consume, dropGroup } from './group.ts'
import { PAGE } from './portion.ts'
import { closed, Reader } from './reader.ts'
import { tlsRefusalOf } from './secureChannels.ts'
import { StoreTime } from './storeTime.ts'
import { ALL, Tail } from './tail.ts'
import { hasExpired, lastLeft, wholeStream } from './wholeStream.ts'
import { isCursor, proposedOf } from './wire.ts'

const PAUSE_MS = 200
/**
 * Opens an event store on EventStoreDB or KurrentDB, 22.10 or newer. Rejects with `bad_request` if the address or
 * the login cannot work, and with `unavailable` if the server does not answer.
 */
export const openEventStoreDb = async (url: string): Promise<EventStore> => {
  const address = parseAddress(url)
  let store: EventStoreDb | undefined
  try {
    store = new EventStoreDb(address)
    await store.check()
    return store
  } catch (error) {
    await store?.close()
    throw openingFailure(store?.tlsRefusal ?? error, address)
  }
}

const openingFailure = (error: unknown, { place }: Address): AppError => {
  const { code, message, cause } = appErrorOf(error)
  return new AppError(isDenied(error) ? 'bad_request' : code, `SVC_EVENT_STORE: ${place}: ${message}`, {
    cause,
  })
}

class EventStoreDb implements EventStore {
  readonly commits: Histogram
  readonly #prefix: string
  readonly #storeTime = new StoreTime()
  readonly #connection: Connection
  readonly #reader: Reader
  readonly #appender: Appender
  readonly #tail: Tail

  constructor(address: Address) {
    this.#prefix = address.prefix
    this.#connection = new Connection(address)
    this.#reader = new Reader(this.#connection, address.prefix, this.#storeTime)
    this.#appender = new Appender(this.#connection, address.prefix)
    this.commits = this.#appender.commits
    this.#tail = new Tail(this.#connection, this.#reader, {
      prefix: address.prefix,
      storeTime: this.#storeTime,
    })
  }

  /** The reason why a TLS connection to the server cannot succeed. */
  get tlsRefusal(): AppError | undefined {
    return tlsRefusalOf(this.#connection.tlsError)
  }

  /** Rejects if the server does not answer, refuses the login or is too old. */
  async check(): Promise<void> {
    await this.head()
    const features = await this.#connection.features()
    if (features.supports(streamsGrpc.StreamsService.batchAppend)) return
    throw new AppError(
      'bad_request',
      `version ${features.serverVersion} is too old: svc needs EventStoreDB 22.10 or newer`,
    )
  }

  async append(stream: string, events: readonly NewEvent[], expected: Expected): Promise<Appended> {
    if (this.#connection.closed.aborted) throw closed()
    const proposed = events.map((event) => proposedOf(event, this.#prefix))
    return await this.#appender.append(stream, proposed, expected)
  }

  async *read(stream: string, { from = 0, limit = Infinity } = {}): AsyncGenerator<Recorded> {
    for await (const event of wholeStream(this.#reader, stream, { from, limit })) yield readable(event)
  }

  async *subscribe({
    after = START,
    signal,
    ...filter
  }: Filter & { after?: Cursor; signal: AbortSignal }): AsyncGenerator<Batch> {
    const matches = matcherOf(filter)
    const until = AbortSignal.any([signal, this.#connection.closed])
    using _ = this.#tail.wakes.wakeOn(until, ALL)
    await this.#tail.begun(until)
    let cursor = after
    let fitting = PAGE
    let reported = false // whether the last batch was `caughtUp`
    while (!until.aborted) {
      let place = this.#tail.placeAfter(cursor)
      if (place === undefined) {
        const page = await this.#again(() => this.#reader.log(cursor, fitting), until)
        if (!page) return
        cursor = page.cursor
        fitting = page.fitting
        reported = false
        const events = matches ? page.events.filter(matches) : page.events
        yield* readableBatch({ events, cursor, caughtUp: false })
        continue
      }
      for (
        let events = this.#tail.after(place, PAGE);
        events && !until.aborted;
        events = this.#tail.after(place, PAGE)
      ) {
        if (events.length === 0 && reported && cursor >= this.#tail.position) {
          await this.#tail.wakes.next(ALL)
          continue
        }
        place += events.length
        reported = place === this.#tail.newest
        const isAhead = events.length > 0 && (events[0] as Recorded).cursor <= cursor // of the tail of this node
        if (isAhead) events = events.filter((event) => event.cursor > cursor)
        const reached = reported ? this.#tail.position : (events.at(-1)?.cursor ?? cursor)
        if (reached > cursor) cursor = reached
        yield* readableBatch({
          events: matches ? events.filter(matches) : events,
          cursor,
          caughtUp: reported,
        })
      }
    }
  }

  async *follow(stream: string, { after = -1, signal }: { after?: number; signal: AbortSignal }) {
    const until = AbortSignal.any([signal, this.#connection.closed])
    using _ = this.#tail.wakes.wakeOn(until, stream)
    await this.#tail.begun(until)
    const follower = new Follower()
    const leave = this.#tail.follow(stream, follower)
    const end = new EndCheck(
      () => lastLeft(this.#reader, stream),
      () => {
        follower.overflowed = true
        this.#tail.wakes.wake(stream)
      },
    )
    try {
      let revision = after
      let behind = true
      let fitting = PAGE
      while (!until.aborted) {
        if (behind || follower.overflowed) {
          follower.overflowed = false
          follower.take()
          end.doubt()
          const page = await this.#again(() => this.#reader.stream(stream, revision + 1, fitting), until)
          if (!page) return
          const { events } = page
          fitting = page.fitting
          behind = events.length > 0 // a short page may be incomplete; an empty one is checked while waiting
          revision = events.at(-1)?.revision ?? revision
          yield* readableStreamBatch({ events, caughtUp: !behind })
          continue
        }
        const events = follower.take().filter((event) => event.revision > revision)
        if (events.length === 0) {
          end.wait(revision)
          await this.#tail.wakes.next(stream)
        } else if (events[0]?.revision !== revision + 1) behind = true
        else {
          end.prove()
          revision += events.length
          yield* readableStreamBatch({ events, caughtUp: true })
        }
      }
    } finally {
      end.close()
      leave()
    }
  }

  consume(group: string, options: Consuming): AsyncGenerator<Delivery> {
    if (this.#connection.closed.aborted) throw closed()
    return consume(this.#connection, this.#tail, this.#prefix, group, options)
  }

  expire(stream: string, maxAgeSeconds: number | null): Promise<void> {
    const deps = { connection: this.#connection, reader: this.#reader }
    return setRetention(deps, { stream, name: this.#prefix + stream }, maxAgeSeconds)
  }

  dropGroup(group: string): Promise<void> {
    return dropGroup(this.#connection, this.#prefix + group)
  }

  isExpired(stream: string): Promise<boolean> {
    return hasExpired(this.#reader, stream)
  }

  leastNow(): number {
    return this.#storeTime.least
  }

  head(): Promise<Cursor> {
    return this.#reader.head()
  }

  canHaveHad(cursor: Cursor): Promise<boolean> {
    return this.#reader.isPlace(cursor)
  }

  remembered(): Promise<Cursor> {
    return Promise.resolve(START)
  }

  acceptLoss(): Promise<void> {
    return Promise.resolve()
  }

  countBetween(): null {
    return null // cursors are positions in bytes
  }

  size(): null {
    return null
  }

  isCursor(text: string): boolean {
    return isCursor(text)
  }

  async close(): Promise<void> {
    this.#appender.close()
    await this.#connection.close()
  }

  /** Repeats a read until it succeeds: subscriptions wait during an outage and then continue (I9). */
  async #again<T>(read: () => Promise<T>, stop: AbortSignal): Promise<T | null> {
    while (!stop.aborted) {
      try {
        return await read()
      } catch (error) {
        if (stop.aborted) return null
        if (!appErrorOf(error).retryable) throw error
        await delay(jittered(PAUSE_MS), undefined, { signal: stop }).catch(() => {})
      }
    }
    return null
  }
}
