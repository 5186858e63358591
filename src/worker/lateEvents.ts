import { setTimeout as delay } from 'node:timers/promises'
import { BoundedMap } from '../boundedMap.ts'
import { clock } from '../clock.ts'
import type { Recorded } from '../events/event.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Directory } from '../projections/directory.ts'
import type { ClaimsAhead } from './bypass.ts'
import { needsRoom } from './heldDeliveries.ts'
import { lineOfEvent, othersOf } from './lines.ts'
import { type Late, takenAs, type UntakenEvents } from './untakenEvents.ts'

/** Default age from which on a worker takes an event that was delivered to another one, milliseconds. */
const LATE_MS = 5000
/** Workers wait for up to this much longer, so that they do not all take the same events. */
const SPREAD_MS = 2000
const CHECK_EVERY_MS = 500
/** The events that are taken at a time. */
const AT_A_TIME = 32
/** An event that could not be claimed is tried again after this time: its delivery is the rule. */
const AGAIN_MS = 30_000
const REMEMBERED = 4096

interface Deps {
  readonly store: Pick<EventStore, 'subscribe'>
  readonly views: { readonly directory: Pick<Directory, 'orgIdOf'> }
  readonly untaken: Pick<UntakenEvents, 'late'>
}

/**
 * Claims events that no worker has taken in time. The consumer group delivers an event to one worker, and to another one
 * only after a minute: if the first one is paused or does not hear, the event would wait for that long. The claim is an
 * append that one worker wins, so a later delivery finds it.
 */
export class LateEvents {
  readonly #deps: Deps
  readonly #host: ClaimsAhead
  readonly #lateMs: number
  readonly #tried = new BoundedMap<string, number>(REMEMBERED)

  constructor(deps: Deps, host: ClaimsAhead, { lateMs = LATE_MS }: { readonly lateMs?: number } = {}) {
    this.#deps = deps
    this.#host = host
    this.#lateMs = lateMs
  }

  /** Runs until the signal aborts; rejects when the store does not answer. */
  async run(signal: AbortSignal): Promise<void> {
    const lateMs = this.#lateMs + Math.random() * SPREAD_MS
    while (!signal.aborted) {
      await delay(CHECK_EVERY_MS, undefined, { signal, ref: false }).catch(() => {})
      const late = this.#deps.untaken.late(lateMs, AT_A_TIME, (id, env_id) => this.#isWanted(id, env_id))
      if (late) await this.#take(late, signal)
    }
  }

  #isWanted(id: string, env_id: string | null): boolean {
    if (env_id !== null && !this.#host.mayClaim(othersOf(this.#orgOf(env_id)))) return false
    return clock.monotonic() - (this.#tried.get(id) ?? -Infinity) >= AGAIN_MS
  }

  #orgOf(env_id: string): string {
    return this.#deps.views.directory.orgIdOf(env_id)
  }

  async #take({ after, ids }: Late, signal: AbortSignal): Promise<void> {
    const left = new Set(ids)
    const types = ['EventPublished', 'RunRequested'] as const
    for await (const { events, caughtUp } of this.#deps.store.subscribe({ after, types, signal })) {
      const wanted = events.filter((event) => left.delete(takenAs(event)))
      await Promise.all(wanted.map((event) => this.#claim(event)))
      if (left.size === 0 || caughtUp) return
    }
  }

  async #claim(event: Recorded): Promise<void> {
    const line = lineOfEvent(this.#orgOf(event.metadata.env_id ?? ''), event)
    if (needsRoom(event) && !this.#host.mayClaim(line)) return
    this.#tried.set(takenAs(event), clock.monotonic())
    await this.#host.claim(line, event)
  }
}
