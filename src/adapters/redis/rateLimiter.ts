import { createHash } from 'node:crypto'
import { clock } from '../../clock.ts'
import { messageOf } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import type { RateLimit, RateLimiter, RateVerdict } from '../../ports/rateLimiter.ts'
import { LocalRates, paceOf, verdictOf } from '../shared/gcra.ts'
import { type Address, parseAddress } from './address.ts'
import { Connection, answerOf } from './connection.ts'

/** A request waits this long for Redis, then it is counted here. */
const ANSWER_MS = 100
/** After a failure all are counted here; one at a time tries Redis, this often. */
const TRY_EVERY_MS = 1000

/** As `take` in `adapters/shared/gcra.ts`, by the clock of Redis, so that those of the nodes do not matter. */
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
 * Limits that all nodes share through Redis. Resolves without Redis, too, and connects when it comes. Throws
 * `bad_request` for a URL or password that cannot work.
 */
export const openRedisRateLimiter = async (url: string, logger: Logger): Promise<RateLimiter> => {
  const address = parseAddress(url)
  const limiter = new RedisRateLimiter(address, logger)
  try {
    await limiter.open()
  } catch (error) {
    await limiter.close()
    throw error
  }
  return limiter
}

/** Never refuses because Redis is away: then each node counts for itself. */
class RedisRateLimiter implements RateLimiter {
  readonly #address: Address
  readonly #logger: Logger
  readonly #local = new LocalRates()
  readonly #connection: Connection
  /** While counting here: when to try Redis again. */
  #tryAt: number | null = null
  #closed = false

  constructor(address: Address, logger: Logger) {
    this.#address = address
    this.#logger = logger
    this.#connection = new Connection(address, {
      onReady: () => this.#back(),
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
      const verdict = await answerOf(ANSWER_MS, this.#takeFromRedis(key, limit))
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
    const pace = paceOf(limit)
    const args = [`${this.#address.prefix}rate:${key}`, pace.intervalUs, pace.toleranceUs] as const
    const { redis } = this.#connection
    const answer = await redis.evalsha(TAKE_SHA, 1, ...args).catch((error: unknown) => {
      if (!messageOf(error).startsWith('NOSCRIPT')) throw error // it forgets scripts when it restarts
      return redis.eval(TAKE, 1, ...args)
    })
    const [allowed, aheadUs] = answer as [number, number]
    return verdictOf(allowed === 1, aheadUs, pace)
  }

  #lost(reason: string): void {
    if (this.#tryAt !== null || this.#closed) return
    this.#tryAt = clock.monotonic() + TRY_EVERY_MS
    const { place } = this.#address
    this.#logger.warn(`Redis at ${place} is not there: each node limits rates for itself`, { reason })
  }

  #back(): void {
    if (this.#tryAt === null) return
    this.#tryAt = null
    this.#logger.info(`Redis at ${this.#address.place} limits rates over all nodes again`)
  }
}
