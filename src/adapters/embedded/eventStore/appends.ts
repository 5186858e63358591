import { clock } from '../../../clock.ts'
import { AppError } from '../../../errors.ts'
import type { NewEvent, Recorded } from '../../../events/event.ts'
import type { Appended, Expected } from '../../../ports/eventStore.ts'
import { Histogram, SHORT } from '../../../ports/histogram.ts'
import type { Recent } from '../../shared/recent.ts'
import { cursorOf } from './cursors.ts'
import { demandOpen } from './demandOpen.ts'
import type { Log } from './log.ts'
import { entryOf } from './logRows.ts'
import type { Reader } from './reader.ts'
import type { Refusals } from './refusals.ts'
import type { Retention } from './retentions.ts'
import type { StreamIndex } from './streamIndex.ts'

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

interface Parts {
  readonly log: Log
  readonly index: StreamIndex
  readonly recent: Recent
  readonly reader: Reader
  readonly refusals: Refusals
  readonly closing: AbortSignal
  /** Throws `unavailable` if the store is closed or its index cannot be completed. */
  readonly ready: () => void
  /** Called after each commit, with the streams that have new events. */
  readonly committed: (streams: ReadonlySet<string>) => void
}

/**
 * Appends that arrive while the event loop is busy are committed together, with the retentions that are set meanwhile. Each
 * reply follows the fsync (I1).
 */
export class Appends {
  readonly commits = new Histogram(SHORT)
  readonly #log: Log
  readonly #index: StreamIndex
  readonly #recent: Recent
  readonly #reader: Reader
  readonly #refusals: Refusals
  readonly #closing: AbortSignal
  readonly #ready: () => void
  readonly #committed: (streams: ReadonlySet<string>) => void
  #pending: Pending[] = []
  #pendingEvents = 0
  #pendingRetentions: PendingRetention[] = []
  #commitDue: NodeJS.Immediate | undefined

  constructor({ log, index, recent, reader, refusals, closing, ready, committed }: Parts) {
    this.#log = log
    this.#index = index
    this.#recent = recent
    this.#reader = reader
    this.#refusals = refusals
    this.#closing = closing
    this.#ready = ready
    this.#committed = committed
  }

  async append(stream: string, events: readonly NewEvent[], expected: Expected): Promise<Appended> {
    this.#ready()
    const actual = this.#reader.headOf(stream)
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

  async expire(stream: string, seconds: number | null): Promise<void> {
    demandOpen(this.#closing)
    if (this.#pendingRetentions.length === 0 && this.#log.retentions.has({ stream, seconds })) return
    this.#commitDue ??= setImmediate(() => this.#commit())
    return new Promise((resolve, reject) =>
      this.#pendingRetentions.push({ stream, seconds, resolve, reject }),
    )
  }

  /** Commits what is pending now. */
  flush(): void {
    if (this.#commitDue) this.#commit()
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
    this.#committed(streams)
  }

  /** The reply to an append whose expected revision is not the stream's: a repeat or an error. */
  #repeatOf(stream: string, events: readonly NewEvent[], expected: Expected): Appended {
    this.flush() // events must be durable before they are reported
    const actual = this.#reader.headOf(stream)
    const wanted = expected === 'none' ? -1 : expected
    if (events.length === 0 && wanted === actual)
      return { revision: actual, cursor: cursorOf(this.#log.last) }
    const stored =
      wanted < actual
        ? this.#reader.readStream(stream, wanted + 1, events.length, { length: Infinity, expired: true })
            .events
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
}
