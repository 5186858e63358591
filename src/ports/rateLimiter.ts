/** How often something may happen: `perSecond` in the long run, `burst` at once. Both above 0, `burst` whole. */
export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

/** What a limiter answers; the parts of a 429 and of `RateLimit` headers. */
export interface RateVerdict {
  readonly allowed: boolean
  /** How many more would be allowed at this moment. */
  readonly remaining: number
  /** Milliseconds until the next one is allowed, rounded up; 0 when this one was. */
  readonly retryAfterMs: number
  /** Milliseconds until the whole burst is there again, rounded up. */
  readonly resetMs: number
}

/**
 * Counts over all nodes by GCRA: no windows, so no doubled bursts at their edges. Adapters: in-process, Redis. One
 * that cannot count over all nodes counts for its own; it never refuses because its engine is down.
 */
export interface RateLimiter {
  /** Takes one from the limit of `key` if there is one to take; what is refused costs nothing. */
  take(key: string, limit: RateLimit): Promise<RateVerdict>
  close(): Promise<void>
}
