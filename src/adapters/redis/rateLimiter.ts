import { createHash } from 'node:crypto'
import { clock } from '../../clock.ts'
import { messageOf } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import type { RateLimit, RateLimiter, RateVerdict } from '../../ports/rateLimiter.ts'
import { LocalRates, gcraParametersOf, verdictOf } from '../shared/gcra.ts'
import { type Address, parseAddress } from './address.ts'
import { Connection, answerOf } from './connection.ts'

/** A request waits this long for Redis; then this node counts it locally. */
const ANSWER_MS = 100
/** After a failure this node counts locally, and one request in this interval tries Redis. */
const TRY_EVERY_MS = 1000

/** `take` of adapters/shared/gcra.ts as a script. It uses the clock of Redis, so the clocks of nodes may differ. */
const TAKE = `
local interval, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local taken = math.min(math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now), now + tolerance)
if taken + interval - now > tolerance then return {0, taken - now} end
taken = taken + interval
redis.call('SET', KEYS[1], string.format('%.0f', taken), 'PX', math.ceil((taken - now) / 1000))
return {1, taken - now}
`
const TAKE_SHA = createHash('sha1').update(TAKE).digest('hex')

/**
 * Opens rate limits that all nodes share. Resolves even if Redis is unavailable, and connects when it is
 * available. Rejects with `bad_request` for a URL or password that cannot work.
 */
export const openRedisRateLimiter = async (
  url: string,
  logger: Logger,
  { answerMs = ANSWER_MS }: { readonly answerMs?: number } = {},
): Promise<RateLimiter> => {
  const address = parseAddress(url)
  const limiter = new RedisRateLimiter(address, logger, answerMs)
  try {
    await limiter.open()
  } catch (error) {
    await limiter.close()
    throw error
  }
  return limiter
}

/** While Redis is unavailable, each node counts on its own and refuses no request for that reason. */
class RedisRateLimiter implements RateLimiter {
  readonly #address: Address
  readonly #logger: Logger
  readonly #answerMs: number
  readonly #local = new LocalRates()
  readonly #connection: Connection
  /** Time of the next attempt to use Redis; null while Redis counts. */
  #tryAt: number | null = null
  #lostAt = 0
  #closed = false

  constructor(address: Address, logger: Logger, answerMs: number) {
    this.#address = address
    this.#logger = logger
    this.#answerMs = answerMs
    this.#connection = new Connection(address, {
      onReady: () => this.#tryNow(),
      onLost: (reason) => this.#lost(reason),
    })
  }

  open(): Promise<void> {
    return this.#connection.open(this.#address.place)
  }

  async take(key: string, limit: RateLimit): Promise<RateVerdict> {
    if (this.#tryAt !== null) {
      if (clock.monotonic() < this.#tryAt) return this.#local.take(key, limit)
      this.#tryAt = clock.monotonic() + TRY_EVERY_MS
    }
    try {
      const verdict = await answerOf(this.#answerMs, this.#takeFromRedis(key, limit))
      this.#back()
      return verdict
    } catch (error) {
      this.#lost(messageOf(error))
      return this.#local.take(key, limit)
    }
  }

  close(): Promise<void> {
    this.#closed = true
    this.#connection.close()
    return Promise.resolve()
  }

  async #takeFromRedis(key: string, limit: RateLimit): Promise<RateVerdict> {
    const parameters = gcraParametersOf(limit)
    const args = [
      `${this.#address.prefix}rate:${key}`,
      parameters.intervalUs,
      parameters.toleranceUs,
    ] as const
    const { redis } = this.#connection
    const answer = await redis.evalsha(TAKE_SHA, 1, ...args).catch((error: unknown) => {
      if (!messageOf(error).startsWith('NOSCRIPT')) throw error // a restarted Redis has lost its scripts
      return redis.eval(TAKE, 1, ...args)
    })
    const [allowed, aheadUs] = answer as [number, number]
    return verdictOf(allowed === 1, aheadUs, parameters)
  }

  /** A connection proves nothing: it may be to a replica, which refuses to count. */
  #tryNow(): void {
    if (this.#tryAt !== null) this.#tryAt = clock.monotonic()
  }

  #lost(reason: string): void {
    if (this.#tryAt !== null || this.#closed) return
    this.#tryAt = clock.monotonic() + TRY_EVERY_MS
    this.#lostAt = clock.monotonic()
    const { place } = this.#address
    this.#logger.warn(`Redis at ${place} is unavailable: each node limits rates on its own`, { reason })
  }

  #back(): void {
    if (this.#tryAt === null) return
    this.#tryAt = null
    const { place } = this.#address
    this.#logger.info(`Redis at ${place} is available: rate limits apply to all nodes together again`, {
      lasted_ms: Math.round(clock.monotonic() - this.#lostAt),
    })
  }
}
