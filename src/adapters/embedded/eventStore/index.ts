import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { clock } from '../../../clock.ts'
import { AppError } from '../../../errors.ts'
import { type NewEvent, type Recorded, START } from '../../../events/event.ts'
import { readable } from '../../../events/upcast.ts'
import { slices } from '../../../loops/slices.ts'
import { Histogram, SHORT } from '../../../ports/histogram.ts'
import type { Appended, EventStore, Expected, Filter } from '../../../ports/eventStore.ts'
import type { StoredLog } from '../../../ports/storedLog.ts'
import { matcherOf } from '../../shared/matching.ts'
import { readableBatch, readableStreamBatch } from '../../shared/readable.ts'
import { Recent } from '../../shared/recent.ts'
import { Wakes } from '../../shared/wakes.ts'
import { type Checkpointer, openCheckpointer } from '../checkpointer.ts'
import type { OnDiscarded } from '../disposableFile.ts'
import { closedOnFailure, unavailable } from '../sqlite.ts'
import { ConsumerPositions } from './consumerPositions.ts'
import { cursorOf, isCursor, positionOf } from './cursors.ts'
import { Group } from './groups.ts'
import { type Log, openLog } from './log.ts'
import { entryOf } from './logRows.ts'
import { BATCH, BATCH_LENGTH, Reader } from './reader.ts'
import { Refusals } from './refusals.ts'
import type { Retention } from './retentions.ts'
import { scavenge } from './scavenge.ts'
import { openStreamIndex, type StreamIndex } from './streamIndex.ts'

/** An append whose events have positions in the log but are not durable yet. */
interface Pending {
  readonly events: readonly Recorded[]
  /** The same events as they will be stored in the log. */
  readonly entries: readonly string[]
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: unknown) => void
}

/** A retention that is not durable yet. */
interface PendingRetention extends Retention {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const ALL = ''
/** Interval of pending background work (positions of groups, WALs). */
const HOUSEKEEPING_MS = 200

interface Options {
  readonly dir: string
  /** Called when `index.db` was unusable and is built again. */
  readonly onDiscarded?: OnDiscarded
  /** Called with the reason when writes are refused (disk full), and with null when they are accepted again. */
  readonly onRefusing?: (reason: string | null) => void
}

/**
 * The embedded event store: a small EventStoreDB on SQLite. Appends that arrive while the event loop is busy
 * are committed together; each reply follows the fsync (I1). Throws `unavailable` as long as the disk is full.
 */
export const openEventStore = ({
  dir,
  onDiscarded = () => {},
  onRefusing = () => {},
}: Options): EventStore => {
  mkdirSync(dir, { recursive: true })
  const checkpointer = openCheckpointer()
  try {
    const log = openLog(join(dir, 'log.db'), checkpointer)
    return closedOnFailure(log, () => {
      const index = openStreamIndex(join(dir, 'index.db'), onDiscarded)
      return closedOnFailure(index, () => new EmbeddedEventStore({ checkpointer, log, index, onRefusing }))
    })
  } catch (error) {
    throw unavailable(error)
  }
}

interface Opened {
  readonly checkpointer: Checkpointer
  readonly log: Log
  readonly index: StreamIndex
  readonly onRefusing: (reason: string | null) => void
}

class EmbeddedEventStore implements EventStore {
  readonly commits = new Histogram(SHORT)
  readonly #checkpointer: Checkpointer
  readonly #consumers: ConsumerPositions
  readonly #refusals: Refusals
  readonly #log: Log
  readonly #index: StreamIndex
  readonly #recent: Recent
  readonly #reader: Reader
  readonly #wakes = new Wakes()
  readonly #groups = new Map<string, Group>()
  readonly #closing = new AbortController()
  #pending: Pending[] = []
  #pendingEvents = 0
  #pendingRetentions: PendingRetention[] = []
  #scavenging: Promise<number> | undefined
  #commitDue: NodeJS.Immediate | undefined
  #housekeeping: NodeJS.Timeout | undefined
  #quiet = true

  constructor({ checkpointer, log, index, onRefusing }: Opened) {
    this.#checkpointer = checkpointer
    this.#log = log
    this.#index = index
    this.#consumers = new ConsumerPositions(index, log)
    this.#refusals = new Refusals(() => {
      log.probe()
      this.#mend()
    }, onRefusing)
    this.#catchUpIndex()
    if (log.lost > 0) index.remember(log.last + log.lost)
    if (index.logId !== log.id) index.assign(log.id)
    this.#recent = new Recent(log.last)
    this.#reader = new Reader({ log, index, recent: this.#recent })
  }

  async append(stream: string, events: readonly NewEvent[], expected: Expected): Promise<Appended> {
    if (this.#closing.signal.aborted) throw closed()
    this.#mend()
    const actual = this.#headOf(stream)
    const wanted = expected === 'none' ? -1 : expected
    if (actual !== wanted || events.length === 0) return this.#repeatOf(stream, events, expected)
    const at = clock.iso()
    const first = this.#log.last + this.#pendingEvents + 1
    const recorded = events.map(({ id, event, metadata }, i) => ({
      id,
      stream,
      revision: actual + 1 + i,
      cursor: cursorOf(first + i),
      at: metadata.first_at ?? at,
      event,
      metadata,
    }))
    const entries = recorded.map(entryOf) // now, so that data which cannot be JSON fails only its own append
    this.#pendingEvents += recorded.length
    this.#index.setHead(stream, actual + recorded.length)
    this.#commitDue ??= setImmediate(() => this.#commit())
    return new Promise((resolve, reject) =>
      this.#pending.push({ events: recorded, entries, resolve, reject }),
    )
  }

  async *read(stream: string, { from = 0, limit = Infinity } = {}): AsyncGenerator<Recorded> {
    for (let revision = from, left = limit; left > 0;) {
      const { events, next } = this.#readStream(stream, revision, Math.min(left, BATCH))
      if (next === revision) return
      for (const event of events) yield readable(event)
      revision = next
      left -= events.length
    }
  }

  async *subscribe({ after = START, signal, ...filter }: Filter & { after?: string; signal: AbortSignal }) {
    const matches = matcherOf(filter)
    const stop = this.#untilAborted(signal, ALL)
    let position = positionOf(after)
    let reported = false
    while (!stop.aborted) {
      const last = this.#log.last
      if (position >= last && reported) {
        await this.#wakes.next(ALL)
        continue
      }
      const { events, upTo } =
        position < last ? this.#reader.readLog(position) : { events: [], upTo: position }
      position = upTo
      const caughtUp = position >= this.#log.last
      const matching = matches ? events.filter(matches) : events
      reported = caughtUp
      yield* readableBatch({ events: matching, cursor: cursorOf(position), caughtUp })
    }
  }

  async *follow(stream: string, { after = -1, signal }: { after?: number; signal: AbortSignal }) {
    const stop = this.#untilAborted(signal, stream)
    let revision = after
    let reported = false
    while (!stop.aborted) {
      const { events, next, isCut } = this.#readStream(stream, revision + 1, BATCH)
      if (next === revision + 1 && reported) {
        await this.#wakes.next(stream)
        continue
      }
      revision = next - 1
      reported = !isCut
      yield* readableStreamBatch({ events, caughtUp: reported })
    }
  }

  consume(
    group: string,
    {
      from = START,
      inFlight = 64,
      signal,
      ...filter
    }: Filter & { from?: string; inFlight?: number; signal: AbortSignal },
  ) {
    if (this.#closing.signal.aborted) throw closed()
    const known = this.#groups.get(group)
    const joined =
      known ??
      new Group(
        group,
        {
          subscribe: (options) => this.subscribe(options),
          load: (name) => this.#consumers.of(name),
          save: (name, position) => this.#consumers.save(name, position),
          changed: () => this.#tidyLater(),
        },
        positionOf(from),
      )
    this.#groups.set(group, joined)
    return joined.consume(filter, inFlight, AbortSignal.any([signal, this.#closing.signal]))
  }

  async dropGroup(group: string): Promise<void> {
    if (this.#closing.signal.aborted) throw closed()
    if (this.#groups.get(group)?.isEmpty === false) return
    this.#groups.delete(group)
    this.#consumers.forget(group)
  }

  async expire(stream: string, seconds: number | null): Promise<void> {
    if (this.#closing.signal.aborted) throw closed()
    if (this.#pendingRetentions.length === 0 && this.#log.retentions.has({ stream, seconds })) return
    this.#commitDue ??= setImmediate(() => this.#commit())
    return new Promise((resolve, reject) =>
      this.#pendingRetentions.push({ stream, seconds, resolve, reject }),
    )
  }

  async isExpired(stream: string): Promise<boolean> {
    if (this.#commitDue) this.#commit() // a pending event is not in the index
    const head = this.#headOf(stream)
    return head >= 0 && this.#log.retentions.isAny && this.#readStream(stream, head, 1).events.length === 0
  }

  scavenge(): Promise<number> {
    if (this.#closing.signal.aborted) throw closed()
    const settle = () => {
      if (this.#commitDue) this.#commit()
      this.#mend()
    }
    const store = { log: this.#log, index: this.#index, recent: this.#recent, settle }
    return (this.#scavenging ??= scavenge(store, slices, this.#closing.signal)
      .catch((error: unknown) => {
        const failure = unavailable(error)
        if (failure.code === 'unavailable') this.#refusals.failed(failure)
        throw failure
      })
      .finally(() => (this.#scavenging = undefined)))
  }

  head(): Promise<string> {
    return Promise.resolve(cursorOf(this.#log.last))
  }

  isCursor(text: string): boolean {
    return isCursor(text)
  }

  remembered(): Promise<string> {
    return Promise.resolve(cursorOf(Math.max(this.#index.remembered, this.#log.last)))
  }

  acceptLoss(): Promise<void> {
    this.#index.forgetLost()
    return Promise.resolve()
  }

  size(): { facts: number; bytes: number } {
    return { facts: this.#log.last, bytes: this.#log.bytes }
  }

  countBetween(after: string, upTo: string): number {
    return positionOf(upTo) - positionOf(after)
  }

  storedLog(): StoredLog {
    if (this.#closing.signal.aborted) throw closed()
    if (this.#commitDue) this.#commit()
    this.#keepConsumers(() => this.#consumers.keep())
    return this.#log.stored()
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    if (this.#commitDue) this.#commit()
    this.#closing.abort()
    clearTimeout(this.#housekeeping)
    this.#refusals.close()
    for (const group of this.#groups.values()) group.save()
    this.#keepConsumers(() => this.#consumers.keep())
    this.#index.close()
    this.#log.close()
    await this.#checkpointer.close()
  }

  /** Writes all pending appends in one commit, then replies. */
  #commit(): void {
    const pending = this.#pending
    this.#pending = []
    this.#pendingEvents = 0
    const retentions = this.#pendingRetentions
    this.#pendingRetentions = []
    clearImmediate(this.#commitDue)
    this.#commitDue = undefined
    const [only] = pending
    const { events, entries } =
      only && pending.length === 1
        ? only
        : {
            events: pending.flatMap(({ events }) => events),
            entries: pending.flatMap(({ entries }) => entries),
          }
    const beganAt = clock.monotonic()
    try {
      this.#log.append(entries, retentions)
    } catch (error) {
      for (const { stream } of events) this.#index.forgetHead(stream)
      for (const { reject } of [...pending, ...retentions]) reject(error)
      this.#refusals.failed(error)
      return
    }
    this.commits.observe((clock.monotonic() - beganAt) / 1000)
    this.#refusals.succeeded()
    const streams = new Set<string>()
    let position = this.#log.last - events.length
    let n = 0
    for (const event of events) {
      this.#recent.add(event, entries[n++]?.length ?? 0)
      this.#index.add(event, ++position)
      streams.add(event.stream)
    }
    for (const { events, resolve } of pending) {
      const { revision, cursor } = events[events.length - 1] as Recorded
      resolve({ revision, cursor })
    }
    for (const { resolve } of retentions) resolve()
    this.#wakes.wake(ALL)
    for (const stream of streams) this.#wakes.wake(stream)
    this.#quiet = false
    this.#tidyLater()
  }

  #tidyLater(): void {
    if (!this.#closing.signal.aborted)
      this.#housekeeping ??= setTimeout(() => this.#tidy(), HOUSEKEEPING_MS).unref()
  }

  #tidy(): void {
    this.#housekeeping = undefined
    for (const [name, group] of this.#groups) {
      group.save()
      if (group.isEmpty) this.#groups.delete(name)
    }
    this.#keepConsumers(() => this.#consumers.keepIfDue())
    if (this.#quiet) this.#index.settle()
    if (!this.#quiet || this.#consumers.isBehind) this.#tidyLater()
    this.#quiet = true
  }

  #keepConsumers(keep: () => void): void {
    try {
      keep()
    } catch (error) {
      this.#refusals.failed(error) // the index has the positions
    }
  }

  /** The reply to an append whose expected revision is not the stream's: a repeat or an error. */
  #repeatOf(stream: string, events: readonly NewEvent[], expected: Expected): Appended {
    if (this.#commitDue) this.#commit() // events must be durable before they are reported
    const actual = this.#headOf(stream)
    const wanted = expected === 'none' ? -1 : expected
    if (events.length === 0 && wanted === actual)
      return { revision: actual, cursor: cursorOf(this.#log.last) }
    const stored =
      wanted < actual
        ? this.#readStream(stream, wanted + 1, events.length, { length: Infinity, expired: true }).events
        : []
    const last = stored[stored.length - 1]
    if (last && stored.length === events.length && stored.every(({ id }, i) => id === events[i]?.id)) {
      return { revision: last.revision, cursor: last.cursor }
    }
    throw new AppError(
      'wrong_revision',
      `Expected stream ${stream} at revision ${expected}, got ${actual < 0 ? 'none' : actual}`,
      {
        data: { stream, expected, actual: actual < 0 ? 'none' : actual },
      },
    )
  }

  /** Returns a signal whose abort wakes the waiters of a key, so that a wait needs no listener of its own. */
  #untilAborted(signal: AbortSignal, key: string): AbortSignal {
    const stop = AbortSignal.any([signal, this.#closing.signal])
    stop.addEventListener('abort', () => this.#wakes.wake(key), { once: true })
    return stop
  }

  #headOf(stream: string): number {
    try {
      return this.#index.headOf(stream)
    } catch (error) {
      throw unavailable(error)
    }
  }

  #readStream(...asked: Parameters<Reader['readStream']>): ReturnType<Reader['readStream']> {
    if (this.#closing.signal.aborted) throw closed()
    this.#mend()
    return this.#reader.readStream(...asked)
  }

  /** Updates an index that could not be written (disk full) before it is read again. */
  #mend(): void {
    if (this.#index.whole) return
    try {
      this.#index.restore()
      this.#catchUpIndex()
      if (!this.#index.whole)
        throw new AppError('unavailable', 'The index of the event store cannot be written')
    } catch (error) {
      this.#refusals.failed(error)
      throw unavailable(error)
    }
  }

  #catchUpIndex(): void {
    const isAnotherLog = ![undefined, this.#log.id].includes(this.#index.logId)
    if (isAnotherLog || this.#index.last > this.#log.last) this.#index.reset(this.#log.last, { isAnotherLog })
    while (this.#index.last < this.#log.last && this.#index.whole) {
      const { events, remains, upTo } = this.#log.readAfter(this.#index.last, BATCH, BATCH_LENGTH)
      const stored = remains.length === 0 ? events : [...events, ...remains].toSorted(byCursor)
      for (const each of stored) this.#index.add(each, positionOf(each.cursor))
      this.#index.reach(upTo)
    }
    this.#index.commit()
  }
}

const byCursor = (a: { cursor: string }, b: { cursor: string }): number => (a.cursor < b.cursor ? -1 : 1)

const closed = (): AppError => new AppError('unavailable', 'The event store is closed')
