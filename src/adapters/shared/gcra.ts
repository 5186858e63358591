import { clock } from '../../clock.ts'
import type { RateLimit, RateVerdict } from '../../ports/rateLimiter.ts'

const SECOND_US = 1e6

/** How many keys are held before those whose burst is whole again are looked for and forgotten. */
const FIRST_SWEEP = 1000

/**
 * A limit as GCRA counts it, in whole microseconds: one is worth `intervalUs`, and what was taken may run
 * `toleranceUs` ahead of the clock. Whole numbers, so that no sum of roundings refuses the last of a burst.
 */
export interface Pace {
  readonly intervalUs: number
  readonly toleranceUs: number
}

export const paceOf = ({ perSecond, burst }: RateLimit): Pace => {
  const intervalUs = Math.max(1, Math.floor(SECOND_US / perSecond))
  return { intervalUs, toleranceUs: intervalUs * Math.max(1, Math.floor(burst)) }
}

/** The verdict where what was taken, this one too if it was allowed, runs `aheadUs` ahead of the clock. */
export const verdictOf = (
  allowed: boolean,
  aheadUs: number,
  { intervalUs, toleranceUs }: Pace,
): RateVerdict => ({
  allowed,
  remaining: Math.max(0, Math.floor((toleranceUs - aheadUs) / intervalUs)),
  retryAfterMs: allowed ? 0 : Math.ceil((aheadUs + intervalUs - toleranceUs) / 1000),
  resetMs: Math.ceil(aheadUs / 1000),
})

/** GCRA in this process. */
export class LocalRates {
  /** Until when each key has taken, microseconds of the monotonic clock. A key of the past is as good as none. */
  readonly #takenUntil = new Map<string, number>()
  #sweepAt = FIRST_SWEEP

  take(key: string, limit: RateLimit): RateVerdict {
    const pace = paceOf(limit)
    const now = Math.floor(clock.monotonic() * 1000)
    const taken = Math.max(this.#takenUntil.get(key) ?? 0, now)
    const until = Math.min(taken, now + pace.toleranceUs) // of an earlier, longer burst no more than this one
    if (until + pace.intervalUs - now > pace.toleranceUs) return verdictOf(false, until - now, pace)
    this.#takenUntil.set(key, until + pace.intervalUs)
    if (this.#takenUntil.size >= this.#sweepAt) this.#sweep(now)
    return verdictOf(true, until + pace.intervalUs - now, pace)
  }

  /** The next sweep waits until as many keys again have come, so that a take costs the same on average. */
  #sweep(now: number): void {
    for (const [key, until] of this.#takenUntil) if (until <= now) this.#takenUntil.delete(key)
    this.#sweepAt = Math.max(FIRST_SWEEP, this.#takenUntil.size * 2)
  }
}
