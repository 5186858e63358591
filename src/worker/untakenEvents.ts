import { clock } from '../clock.ts'
import { type Cursor, isHandledElsewhere, type Recorded, START } from '../events/event.ts'
import type { Logger } from '../logger.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Directory } from '../projections/directory.ts'
import { needsRoom } from './heldDeliveries.ts'

/**
 * Default number of events that are remembered. An organization has at most as many of them as are free, so it can have half.
 * Its later ones are read again when these are taken.
 */
const REMEMBERED = 20_000
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

interface Waiting {
  readonly at: number
  /** A position before it. */
  readonly after: Cursor
  /** The environment in which it needs room; null if it needs none. */
  readonly env_id: string | null
  readonly org_id: string
}

interface Deps {
  readonly store: Pick<EventStore, 'head' | 'subscribe'>
  readonly views: { readonly directory: Pick<Directory, 'orgIdOf'> }
  readonly logger: Logger
}

/** Events that no worker has taken in time, and a position before the first of them. */
export interface Late {
  readonly after: Cursor
  readonly ids: ReadonlySet<string>
}

/**
 * The events and requested runs that no worker has taken since this node started. Their age is the time since this node
 * read them, so the clocks of nodes and engines may differ. A worker that no longer receives events shows here, although
 * it is alive.
 */
export class UntakenEvents {
  readonly #store: Deps['store']
  readonly #directory: Deps['views']['directory']
  readonly #logger: Logger
  readonly #remembered: number
  readonly #lateMs: number
  /** In the order of their ages, except that some were read again. */
  readonly #untaken = new Map<string, Waiting>()
  /** The numbers of them by organization. */
  readonly #ofOrg = new Map<string, number>()
  #after: Cursor | undefined
  /** A position before the first event that was not remembered, its time, and the organizations of all such events. */
  #passed: { readonly after: Cursor; readonly at: number; readonly org_ids: Set<string> } | undefined
  /** The time of the events that are read again. */
  #againAt: number | undefined
  #lateSince: number | undefined

  constructor(
    { store, views, logger }: Deps,
    { remembered = REMEMBERED, lateMs = LATE_MS }: { remembered?: number; lateMs?: number } = {},
  ) {
    this.#store = store
    this.#directory = views.directory
    this.#logger = logger
    this.#remembered = remembered
    this.#lateMs = lateMs
  }

  /** The age of the oldest; 0 when workers have taken all events. */
  get oldestMs(): number {
    const oldest = this.#oldest
    return oldest === undefined ? 0 : Math.round(clock.monotonic() - oldest.at)
  }

  /** The number of them that are remembered. */
  get waiting(): number {
    return this.#untaken.size
  }

  /** The oldest events that have waited for `ms` milliseconds, and that are wanted; null if there is none. */
  late(ms: number, most: number, isWanted: (id: string, env_id: string | null) => boolean): Late | null {
    const before = clock.monotonic() - ms
    const ids = new Set<string>()
    let first: Cursor | undefined
    for (const [id, { at, after, env_id }] of this.#untaken) {
      if (ids.size === most) break
      if (at > before || !isWanted(id, env_id)) continue
      if (first === undefined || after < first) first = after
      ids.add(id)
    }
    return first === undefined ? null : { after: first, ids }
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
      if (!this.#passed || !this.#hasRoomAgain(this.#passed.org_ids)) continue
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
        return this.#add(recorded)
      case 'RunRequested':
        return this.#add(recorded)
      case 'EventHandled':
        return this.#taken(event.event_id)
      case 'RunStarted':
        if (event.event_id !== undefined) this.#waitAnew(event.event_id)
        return this.#taken(event.run_id)
      case 'RunFailed':
      case 'RunCancelled':
        return this.#taken(event.run_id)
      default:
    }
  }

  /** A part of the runs of an event was claimed. The others begin to wait. */
  #waitAnew(event_id: string): void {
    const waiting = this.#untaken.get(event_id)
    if (!waiting) return
    this.#untaken.delete(event_id)
    this.#untaken.set(event_id, { ...waiting, at: clock.monotonic() })
  }

  #add(recorded: Recorded): void {
    if (isHandledElsewhere(recorded.metadata)) return
    const id = takenAs(recorded)
    if (this.#untaken.has(id)) return // it is read again
    const org_id = this.#directory.orgIdOf(recorded.metadata.env_id ?? '')
    const at = this.#againAt ?? clock.monotonic()
    const after = this.#after ?? START
    const env_id = needsRoom(recorded) ? (recorded.metadata.env_id ?? '') : null
    const ofOrg = this.#ofOrg.get(org_id) ?? 0
    if (ofOrg < this.#free && !this.#passed?.org_ids.has(org_id)) {
      this.#untaken.set(id, { at, after, env_id, org_id })
      this.#ofOrg.set(org_id, ofOrg + 1)
      return
    }
    this.#passed ??= { after, at, org_ids: new Set() }
    this.#passed.org_ids.add(org_id)
  }

  #taken(id: string): void {
    const waiting = this.#untaken.get(id)
    if (!waiting) return
    this.#untaken.delete(id)
    const left = (this.#ofOrg.get(waiting.org_id) ?? 0) - 1
    if (left > 0) this.#ofOrg.set(waiting.org_id, left)
    else this.#ofOrg.delete(waiting.org_id)
  }

  get #free(): number {
    return this.#remembered - this.#untaken.size
  }

  /** Whether one of these organizations has room for many events again: each time, the log is read from the first of them. */
  #hasRoomAgain(org_ids: ReadonlySet<string>): boolean {
    const free = this.#free
    if (free < this.#remembered / 8) return false
    return org_ids.values().some((org_id) => (this.#ofOrg.get(org_id) ?? 0) < free / 4)
  }

  get #oldest(): { readonly id: string; readonly at: number } | undefined {
    let oldest: { readonly id: string; readonly at: number } | undefined
    for (const [id, { at }] of this.#untaken) if (oldest === undefined || at < oldest.at) oldest = { id, at }
    return oldest
  }

  /** Logs the beginning and the end of a time in which events wait for too long. */
  #check(): void {
    const { oldestMs } = this
    if (this.#lateSince === undefined && oldestMs > this.#lateMs) {
      const id = this.#oldest?.id
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

/** The id as which an event or a requested run is taken. */
export const takenAs = ({ id, event }: Recorded): string => {
  if (event.type === 'EventPublished') return event.event_id
  return event.type === 'RunRequested' ? event.run_id : id
}
