import { clock } from '../clock.ts'
import type { Collector } from './collector.ts'

/** Operations of an organization in a turn of the event loop; and while others were active in the last `RECENT_MS`. */
const ALONE_PER_TURN = 20
const SHARED_PER_TURN = 2
const RECENT_MS = 1000

/** The same in a turn with a long step of background work. */
const BESIDE_STEP = 8

/** The shortest rest, which is that of a timer, and the longest, milliseconds. */
const MIN_REST_MS = 1
const MAX_REST_MS = 20

/** The longest time for which operations wait while connections arrive. The time between two waits is as long. */
const ARRIVING_MS = 50

/** A step of background work. Returns whether it is long. */
export type Step = () => boolean

/**
 * Shares the event loop between organizations, which all wait for one thread. T1: an organization that is active alone
 * begins at most `ALONE_PER_TURN` operations in a turn of the loop, so that turns remain short. T2: otherwise each one
 * begins at most `SHARED_PER_TURN`, so the flood of one delays an operation of another by little more than a turn.
 * T3: operations of one organization keep their order. T4: while connections arrive, each organization begins one
 * operation in a turn: the loop accepts one connection in a turn, so a turn must not be filled by earlier clients. T5: while
 * others were active, organizations whose operations wait leave the share of one more organization free. When `n` of them
 * have begun operations in a turn, they rest for an `n`th of its time, so that the others find the loop and the processors idle.
 * T6: long steps do not add up. A turn with a long step of background work begins at most `BESIDE_STEP` operations of an organization,
 * and one in which the garbage collector has paused the thread begins nothing.
 */
export class FairTurns {
  /** Operations begun since the last look at those that wait, by organization. */
  readonly #begun = new Map<string, number>()
  /** Those that did not wait. They belong to the turn of the next look (T1). */
  readonly #begunAtOnce = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()
  #latest = ''
  /** Monotonic milliseconds until which more than one organization counts as active. */
  #sharedUntil = 0
  #isTurning = false
  #hasAccepted = false
  /** Monotonic milliseconds at which connections began to arrive; 0 while none arrive. */
  #arrivingSince = 0
  /** Monotonic milliseconds until which arriving connections delay nothing. */
  #workingUntil = 0
  /** Organizations that began operations in this turn and have more of them, and when (T5). */
  #crowding = 0
  #crowdedAt = 0
  /** Milliseconds of rest that are due. Negative after a timer that was late. */
  #restDue = 0
  #isResting = false
  /** Steps of background work that wait for the next turn. */
  readonly #steps: Step[] = []
  readonly #collector: Pick<Collector, 'hasPaused'>
  /** A collector that pauses in each turn must not stop the operations. */
  #hasSkipped = false

  constructor(collector: Pick<Collector, 'hasPaused'> = { hasPaused: () => false }) {
    this.#collector = collector
  }

  /** Notes that the loop has accepted a connection. */
  accepted(): void {
    const now = clock.monotonic()
    this.#hasAccepted = true
    if (this.#arrivingSince > 0 || now < this.#workingUntil) return
    this.#arrivingSince = now
    this.#turn()
  }

  /** Returns null if the operation may begin at once: a promise for each one would cost time. */
  take(org_id: string): Promise<void> | null {
    const now = clock.monotonic()
    if (org_id !== this.#latest) {
      if (this.#latest !== '') this.#sharedUntil = now + RECENT_MS
      this.#latest = org_id
    }
    this.#turn()
    const waiting = this.#waiting.get(org_id)
    const begun = this.#begun.get(org_id) ?? 0
    if (!waiting && begun < this.#mostAt(now)) {
      this.#begun.set(org_id, begun + 1)
      this.#begunAtOnce.set(org_id, (this.#begunAtOnce.get(org_id) ?? 0) + 1)
      return null
    }
    return new Promise((resolve) => {
      if (waiting) waiting.push(resolve)
      else this.#waiting.set(org_id, [resolve])
    })
  }

  /** Calls a step of background work in the next turn. If it is long, the turn begins fewer operations (T6). */
  step(step: Step): void {
    this.#steps.push(step)
    this.#turn()
  }

  #turn(): void {
    if (this.#isTurning) return
    this.#isTurning = true
    setImmediate(() => {
      this.#isTurning = false
      this.#begun.clear()
      const now = clock.monotonic()
      this.#endArrivals(now)
      this.#rest(now)
      this.#hasSkipped = this.#collector.hasPaused() && !this.#hasSkipped
      if (!this.#hasSkipped) this.#begin(now)
      this.#begunAtOnce.clear()
      if (this.#hasMore()) this.#turn()
    })
  }

  #begin(now: number): void {
    const isLong = this.#steps.splice(0).reduce((long, step) => step() || long, false)
    if (!this.#isResting) this.#beginWaiting(now, isLong ? BESIDE_STEP : ALONE_PER_TURN)
  }

  #hasMore(): boolean {
    if (this.#begun.size > 0 || this.#arrivingSince > 0 || this.#steps.length > 0) return true
    return this.#waiting.size > 0 && !this.#isResting
  }

  #beginWaiting(now: number, room: number): void {
    const most = Math.min(this.#mostAt(now), room)
    for (const [org_id, waiting] of this.#waiting) {
      const next = waiting.splice(0, Math.max(0, most - (this.#begunAtOnce.get(org_id) ?? 0)))
      this.#begun.set(org_id, next.length)
      if (waiting.length === 0) this.#waiting.delete(org_id)
      for (const begin of next) begin()
    }
    this.#crowding = now < this.#sharedUntil ? this.#waiting.size : 0
    this.#crowdedAt = now
  }

  /** Begins the rest that the turn since `#crowdedAt` has caused (T5). */
  #rest(now: number): void {
    if (this.#crowding === 0) return
    this.#restDue += (now - this.#crowdedAt) / this.#crowding
    this.#crowding = 0
    if (this.#restDue < MIN_REST_MS) return
    this.#isResting = true
    const due = Math.min(this.#restDue, MAX_REST_MS)
    setTimeout(() => {
      this.#isResting = false
      this.#restDue = due - (clock.monotonic() - now)
      this.#turn()
    }, due)
  }

  /** The operations that an organization may begin in a turn. */
  #mostAt(now: number): number {
    if (this.#arrivingSince > 0) return 1 // T4
    return now < this.#sharedUntil ? SHARED_PER_TURN : ALONE_PER_TURN
  }

  /** Connections arrive until a turn of the loop accepts none. */
  #endArrivals(now: number): void {
    const since = this.#arrivingSince
    if (since > 0 && (!this.#hasAccepted || now - since >= ARRIVING_MS)) {
      this.#workingUntil = now + (now - since)
      this.#arrivingSince = 0
    }
    this.#hasAccepted = false
  }
}
