import type { RateLimit, RateVerdict } from '../../ports/rateLimiter.ts'

const SECOND_US = 1e6

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
