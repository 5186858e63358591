import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { clock } from '../../../clock.ts'
import type { NewEvent, Recorded } from '../../../events/event.ts'
import { readable } from '../../../events/upcast.ts'
import { reads, slices } from '../../../loops/slices.ts'
import type { Histogram } from '../../../ports/histogram.ts'
import type {
  Appended,
  Batch,
  Delivery,
  EventStore,
  Expected,
  StreamBatch,
} from '../../../ports/eventStore.ts'
import type { StoredLog } from '../../../ports/storedLog.ts'
import { Recent } from '../../shared/recent.ts'
import { type Checkpointer, openCheckpointer } from '../checkpointer.ts'
import type { OnDamaged, OnDiscarded } from '../disposableFile.ts'
import { closedOnFailure, unavailable } from '../sqlite.ts'
import { Appends } from './appends.ts'
import { ConsumerGroups } from './consumerGroups.ts'
import { ConsumerPositions } from './consumerPositions.ts'
import { cursorOf, isCursor, positionOf } from './cursors.ts'
import { demandOpen } from './demandOpen.ts'
import { type Log, openLog } from './log.ts'
import { catchUpIndex, demandIndex, mendIndex } from './mendIndex.ts'
import { BATCH, Reader } from './reader.ts'
import { Refusals } from './refusals.ts'
import { scavenge } from './scavenge.ts'
import { openStreamIndex, type StreamIndex } from './streamIndex.ts'
import { Subscriptions } from './subscriptions.ts'

/** Interval of pending background work (positions of groups, WALs). */
const HOUSEKEEPING_MS = 200

interface Options {
  readonly dir: string
  /** Called when `index.db` was unusable and is built again. */
  readonly onDiscarded?: OnDiscarded
  /** Called when `index.db` was found damaged. */
  readonly onDamaged?: OnDamaged
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
  onDamaged = () => {},
  onRefusing = () => {},
}: Options): EventStore => {
  mkdirSync(dir, { recursive: true })
  const checkpointer = openCheckpointer()
  try {
    const index = openStreamIndex(join(dir, 'index.db'), onDiscarded, onDamaged)
    return closedOnFailure(index, () => {
      const log = openLog(join(dir, 'log.db'), checkpointer, (position) => index.remember(position))
      return closedOnFailure(log, () => new EmbeddedEventStore({ checkpointer, log, index, onRefusing }))
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
  readonly commits: Histogram
  readonly #checkpointer: Checkpointer
  readonly #log: Log
  readonly #index: StreamIndex
  readonly #recent: Recent
  readonly #reader: Reader
  readonly #refusals: Refusals
  readonly #appends: Appends
  readonly #subscriptions: Subscriptions
  readonly #groups: ConsumerGroups
  readonly #closing = new AbortController()
  /** What backups in progress are reading. */
  readonly #copied = new Set<Pick<StoredLog, 'position'>>()
  #scavenging: Promise<number> | undefined
  #housekeeping: NodeJS.Timeout | undefined
  #quiet = true

  constructor({ checkpointer, log, index, onRefusing }: Opened) {
    this.#checkpointer = checkpointer
    this.#log = log
    this.#index = index
    const closing = this.#closing.signal
    const refusals = new Refusals(() => {
      log.probe()
      mendIndex(mended)
    }, onRefusing)
    const mended = { log, index, refusals }
    this.#refusals = refusals
    catchUpIndex(log, index)
    if (index.logId !== log.id) index.assign(log.id)
    const recent = new Recent(log.last)
    this.#recent = recent
    const ready = () => {
      demandOpen(closing)
      demandIndex(mended)
    }
    const reader = new Reader({ log, index, recent, ready })
    this.#reader = reader
    const subscriptions = new Subscriptions({ log, reader, closing })
    this.#subscriptions = subscriptions
    const committed = (streams: ReadonlySet<string>) => {
      subscriptions.wake(streams)
      this.#quiet = false
      this.#tidyLater()
    }
    this.#appends = new Appends({ log, index, recent, reader, refusals, closing, ready, committed })
    this.commits = this.#appends.commits
    const positions = new ConsumerPositions(index, log)
    const changed = () => this.#tidyLater()
    this.#groups = new ConsumerGroups({ positions, subscriptions, refusals, closing, changed })
  }

  append(stream: string, events: readonly NewEvent[], expected: Expected): Promise<Appended> {
    return this.#appends.append(stream, events, expected)
  }

  async *read(stream: string, { from = 0, limit = Infinity } = {}): AsyncGenerator<Recorded> {
    for (let revision = from, left = limit; left > 0;) {
      const { events, next, isCut } = this.#reader.readStream(stream, revision, Math.min(left, BATCH))
      if (next === revision) return
      for (const event of events) yield readable(event)
      revision = next
      left -= events.length
      const wait = isCut && left > 0 ? reads.take() : null
      if (wait) await wait
    }
  }

  subscribe(options: Parameters<Subscriptions['subscribe']>[0]): AsyncGenerator<Batch> {
    return this.#subscriptions.subscribe(options)
  }

  follow(...asked: Parameters<Subscriptions['follow']>): AsyncGenerator<StreamBatch> {
    return this.#subscriptions.follow(...asked)
  }

  consume(...asked: Parameters<ConsumerGroups['consume']>): AsyncGenerator<Delivery> {
    return this.#groups.consume(...asked)
  }

  async dropGroup(group: string): Promise<void> {
    demandOpen(this.#closing.signal)
    this.#groups.drop(group)
  }

  expire(stream: string, seconds: number | null): Promise<void> {
    return this.#appends.expire(stream, seconds)
  }

  async isExpired(stream: string): Promise<boolean> {
    this.#appends.flush() // a pending event is not in the index
    const head = this.#reader.headOf(stream)
    return (
      head >= 0 && this.#log.retentions.isAny && this.#reader.readStream(stream, head, 1).events.length === 0
    )
  }

  scavenge(): Promise<number> {
    demandOpen(this.#closing.signal)
    const [log, index, refusals] = [this.#log, this.#index, this.#refusals]
    const settle = () => {
      this.#appends.flush()
      demandIndex({ log, index, refusals })
    }
    const store = { log, index, recent: this.#recent, copied: this.#copied, settle }
    return (this.#scavenging ??= scavenge(store, slices, this.#closing.signal)
      .catch((error: unknown) => {
        const failure = unavailable(error)
        if (failure.code === 'unavailable' && !index.isDamaged) refusals.failed(failure)
        throw failure
      })
      .finally(() => (this.#scavenging = undefined)))
  }

  leastNow(): number {
    return clock.now()
  }

  head(): Promise<string> {
    return Promise.resolve(cursorOf(this.#log.last))
  }

  canHaveHad(): Promise<boolean> {
    return Promise.resolve(true) // nobody else writes into this log
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
    demandOpen(this.#closing.signal)
    this.#appends.flush()
    this.#groups.keep()
    const log = this.#log.stored()
    this.#copied.add(log)
    return { ...log, release: () => void this.#copied.delete(log) }
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#appends.flush()
    this.#closing.abort()
    clearTimeout(this.#housekeeping)
    this.#refusals.close()
    this.#groups.close()
    this.#index.close()
    await this.#checkpointer.close() // it must not hold the WAL
    this.#log.close()
  }

  #tidyLater(): void {
    if (!this.#closing.signal.aborted)
      this.#housekeeping ??= setTimeout(() => this.#tidy(), HOUSEKEEPING_MS).unref()
  }

  #tidy(): void {
    this.#housekeeping = undefined
    this.#groups.tidy()
    if (this.#quiet) this.#index.settle()
    if (!this.#quiet || this.#groups.isBehind) this.#tidyLater()
    this.#quiet = true
  }
}
