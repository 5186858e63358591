import { clock } from '../../clock.ts'
import type { RateLimit, RateLimiter, RateVerdict } from '../../ports/rateLimiter.ts'
import { paceOf, verdictOf } from '../shared/gcra.ts'

/** How many keys are held before those whose burst is whole again are looked for and forgotten. */
const FIRST_SWEEP = 1000

/** A limiter for this process alone. */
export const openRateLimiter = (): RateLimiter => new EmbeddedRateLimiter()

class EmbeddedRateLimiter implements RateLimiter {
  /** Until when each key has taken, microseconds of the monotonic clock. A key of the past is as good as none. */
  readonly #takenUntil = new Map<string, number>()
  #sweepAt = FIRST_SWEEP

  take(key: string, limit: RateLimit): Promise<RateVerdict> {
    const pace = paceOf(limit)
    const now = Math.floor(clock.monotonic() * 1000)
    const until = Math.max(this.#takenUntil.get(key) ?? 0, now)
    const allowed = until + pace.intervalUs - now <= pace.toleranceUs
    if (!allowed) return Promise.resolve(verdictOf(false, until - now, pace))
    this.#takenUntil.set(key, until + pace.intervalUs)
    if (this.#takenUntil.size >= this.#sweepAt) this.#sweep(now)
    return Promise.resolve(verdictOf(true, until + pace.intervalUs - now, pace))
  }

  close(): Promise<void> {
    this.#takenUntil.clear()
    return Promise.resolve()
  }

  /** The next sweep waits until as many keys again have come, so that a take costs the same on average. */
  #sweep(now: number): void {
    for (const [key, until] of this.#takenUntil) if (until <= now) this.#takenUntil.delete(key)
    this.#sweepAt = Math.max(FIRST_SWEEP, this.#takenUntil.size * 2)
  }
}
