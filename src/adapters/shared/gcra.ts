import { clock } from '../../clock.ts'
import type { RateLimit, RateVerdict } from '../../ports/rateLimiter.ts'

const SECOND_US = 1e6

/** The number of keys at which keys with their full burst are removed for the first time. */
const FIRST_SWEEP = 1000

/**
 * A limit in the terms of GCRA: each request advances the key's time by `intervalUs`, and that time may be at
 * most `toleranceUs` ahead of the clock. Whole microseconds, so that rounding never refuses the last of a burst.
 */
export interface GcraParameters {
  readonly intervalUs: number
  readonly toleranceUs: number
}

export const gcraParametersOf = ({ perSecond, burst }: RateLimit): GcraParameters => {
  const intervalUs = Math.max(1, Math.floor(SECOND_US / perSecond))
  return { intervalUs, toleranceUs: intervalUs * Math.max(1, Math.floor(burst)) }
}

/** Returns the verdict for a key whose time is `aheadUs` ahead of the clock, this request included if allowed. */
export const verdictOf = (
  allowed: boolean,
  aheadUs: number,
  { intervalUs, toleranceUs }: GcraParameters,
): RateVerdict => ({
  allowed,
  remaining: Math.max(0, Math.floor((toleranceUs - aheadUs) / intervalUs)),
  retryAfterMs: allowed ? 0 : Math.ceil((aheadUs + intervalUs - toleranceUs) / 1000),
  resetMs: Math.ceil(aheadUs / 1000),
})

/** GCRA for the keys of this process. */
export class LocalRates {
  /** The time of each key in microseconds of the monotonic clock. A time in the past equals a missing key. */
  readonly #takenUntil = new Map<string, number>()
  #sweepAt = FIRST_SWEEP

  take(key: string, limit: RateLimit): RateVerdict {
    const parameters = gcraParametersOf(limit)
    const now = Math.floor(clock.monotonic() * 1000)
    const taken = Math.max(this.#takenUntil.get(key) ?? 0, now)
    const until = Math.min(taken, now + parameters.toleranceUs) // limits the time that a key kept from an earlier, longer burst
    if (until + parameters.intervalUs - now > parameters.toleranceUs)
      return verdictOf(false, until - now, parameters)
    this.#takenUntil.set(key, until + parameters.intervalUs)
    if (this.#takenUntil.size >= this.#sweepAt) this.#sweep(now)
    return verdictOf(true, until + parameters.intervalUs - now, parameters)
  }

  /** Removes expired keys. The next sweep waits until the number of keys has doubled, so the average cost is constant. */
  #sweep(now: number): void {
    for (const [key, until] of this.#takenUntil) if (until <= now) this.#takenUntil.delete(key)
    this.#sweepAt = Math.max(FIRST_SWEEP, this.#takenUntil.size * 2)
  }
}
