/** A rate: `perSecond` on average, `burst` at once. Both are above 0, and `burst` is a whole number. */
export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

/** The reply of a limiter, with the values for a 429 and for `RateLimit` headers. */
export interface RateVerdict {
  readonly allowed: boolean
  /** The number of further requests that would be allowed at this moment. */
  readonly remaining: number
  /** Milliseconds until the next request is allowed, rounded up; 0 when this one was. */
  readonly retryAfterMs: number
  /** Milliseconds until the whole burst is available again, rounded up. */
  readonly resetMs: number
}

/**
 * Counts over all nodes by GCRA, which has no windows and so no double bursts at their edges. Adapters: in-process,
 * Redis. If Redis is down, each node counts for itself, and no request is refused for that reason.
 */
export interface RateLimiter {
  /** Counts one request against the limit of `key`. A refused request does not count. */
  take(key: string, limit: RateLimit): Promise<RateVerdict>
  close(): Promise<void>
}
