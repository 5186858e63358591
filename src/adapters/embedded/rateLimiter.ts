import type { RateLimiter } from '../../ports/rateLimiter.ts'
import { LocalRates } from '../shared/gcra.ts'

/** A rate limiter for this process only. */
export const openRateLimiter = (): RateLimiter => {
  const rates = new LocalRates()
  return {
    take: async (key, limit) => rates.take(key, limit),
    close: () => Promise.resolve(),
  }
}
