import { clock } from '../clock.ts'
import { type Cursor, type Recorded, START } from '../events/event.ts'
import type { Logger } from '../logger.ts'
import type { EventStore } from '../ports/eventStore.ts'

/** Default number of events that are remembered. Later ones are read again when these are taken. */
const REMEMBERED = 10_000
/** Default age from which on an event that no worker has taken is logged, milliseconds. */
const LATE_MS = 10_000
const CHECK_EVERY_MS = 1000

const TYPES = [
  'EventPublished',
  'EventHandled',
  'RunRequested',
  'RunStarted',
  'RunFailed',
  'RunCancelled',
] as const

/**
 * The events and requested runs that no worker has taken since this node started. Their age is the time since this node
 * read them, so the clocks of nodes and engines may differ. A worker that no longer receives events shows here, although
 * it is alive.
 */
export class UntakenEvents {
  readonly #store: Pick<EventStore, 'head' | 'subscribe'>
  readonly #logger: Logger
  readonly #remembered: number
  readonly #lateMs: number
  /** The time of each event or run, in the order of the log. */
  readonly #untaken = new Map<string, number>()
  #after: Cursor | undefined
  /** A position before the first event that was not remembered, and its time. */
  #passed: { readonly after: Cursor; readonly at: number } | undefined
  /** The time of the events that are read again. */
  #againAt: number | undefined
  #lateSince: number | undefined

  constructor(
    { store, logger }: { store: Pick<EventStore, 'head' | 'subscribe'>; logger: Logger },
    { remembered = REMEMBERED, lateMs = LATE_MS }: { remembered?: number; lateMs?: number } = {},
  ) {
    this.#store = store
    this.#logger = logger
    this.#remembered = remembered
    this.#lateMs = lateMs
  }

  /** The age of the oldest; 0 when workers have taken all events. */
  get oldestMs(): number {
    const [oldest] = this.#untaken.values()
    return oldest === undefined ? 0 : Math.round(clock.monotonic() - oldest)
  }

  /** The number of them that are remembered. */
  get waiting(): number {
    return this.#untaken.size
  }

  /** Follows the log until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    this.#after ??= await this.#store.head()
    const checks = setInterval(() => this.#check(), CHECK_EVERY_MS).unref()
    try {
      while (!signal.aborted) await this.#read(this.#after, signal)
    } finally {
      clearInterval(checks)
    }
  }

  async #read(after: Cursor, signal: AbortSignal): Promise<void> {
    for await (const { events, cursor, caughtUp } of this.#store.subscribe({ after, types: TYPES, signal })) {
      for (const recorded of events) {
        this.#note(recorded)
        this.#after = recorded.cursor
      }
      this.#after = cursor
      if (caughtUp) this.#againAt = undefined
      if (!this.#passed || this.#untaken.size > 0) continue
      this.#after = this.#passed.after
      this.#againAt = this.#passed.at
      this.#passed = undefined
      return
    }
  }

  #note(recorded: Recorded): void {
    const { event } = recorded
    switch (event.type) {
      case 'EventPublished':
        return this.#add(event.event_id)
      case 'RunRequested':
        return this.#add(event.run_id)
      case 'EventHandled':
        return void this.#untaken.delete(event.event_id)
      case 'RunStarted':
      case 'RunFailed':
      case 'RunCancelled':
        return void this.#untaken.delete(event.run_id)
      default:
    }
  }

  #add(id: string): void {
    const at = this.#againAt ?? clock.monotonic()
    if (this.#untaken.size < this.#remembered && !this.#passed) this.#untaken.set(id, at)
    else this.#passed ??= { after: this.#after ?? START, at }
  }

  /** Logs the beginning and the end of a time in which events wait for too long. */
  #check(): void {
    const { oldestMs } = this
    if (this.#lateSince === undefined && oldestMs > this.#lateMs) {
      const [id] = this.#untaken.keys()
      this.#lateSince = clock.monotonic() - oldestMs
      this.#logger.warn('No worker has taken an event for too long', {
        id,
        oldest_ms: oldestMs,
        waiting: this.#untaken.size,
      })
    } else if (this.#lateSince !== undefined && oldestMs <= this.#lateMs) {
      const lasted_ms = Math.round(clock.monotonic() - this.#lateSince)
      this.#lateSince = undefined
      this.#logger.info('Workers take all events in time again', { lasted_ms })
    }
  }
}
