import type { RateLimiter } from '../../ports/rateLimiter.ts'
import { LocalRates } from '../shared/gcra.ts'

/** A limiter for this process alone. */
export const openRateLimiter = (): RateLimiter => {
  const rates = new LocalRates()
  return {
    take: async (key, limit) => rates.take(key, limit),
    close: () => Promise.resolve(),
  }
}
