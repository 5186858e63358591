import { clock } from '../clock.ts'

/** Operations of one organization in a turn of the event loop, while others were active in the last `RECENT_MS`. */
const PER_TURN = 2
const RECENT_MS = 1000

/**
 * Shares the event loop between organizations, which all wait for one thread. T1: an organization that is active alone
 * never waits. T2: otherwise each one begins at most `PER_TURN` operations in a turn of the loop, so the flood of one
 * delays an operation of another by little more than a turn. T3: operations of one organization keep their order.
 */
export class FairTurns {
  /** Operations begun in this turn, by organization. */
  readonly #begun = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()
  #latest = ''
  /** Monotonic milliseconds until which more than one organization counts as active. */
  #sharedUntil = 0
  #isTurning = false

  /** Returns null if the operation may begin at once: a promise for each one would cost time. */
  take(org_id: string): Promise<void> | null {
    const now = clock.monotonic()
    if (org_id !== this.#latest) {
      if (this.#latest !== '') this.#sharedUntil = now + RECENT_MS
      this.#latest = org_id
    }
    if (now >= this.#sharedUntil && this.#waiting.size === 0) return null // T1
    this.#turn()
    const waiting = this.#waiting.get(org_id)
    const begun = this.#begun.get(org_id) ?? 0
    if (!waiting && begun < PER_TURN) {
      this.#begun.set(org_id, begun + 1)
      return null
    }
    return new Promise((resolve) => {
      if (waiting) waiting.push(resolve)
      else this.#waiting.set(org_id, [resolve])
    })
  }

  #turn(): void {
    if (this.#isTurning) return
    this.#isTurning = true
    setImmediate(() => {
      this.#isTurning = false
      this.#begun.clear()
      for (const [org_id, waiting] of this.#waiting) {
        const next = waiting.splice(0, PER_TURN)
        this.#begun.set(org_id, next.length)
        if (waiting.length === 0) this.#waiting.delete(org_id)
        for (const begin of next) begin()
      }
      if (this.#begun.size > 0) this.#turn()
    })
  }
}
