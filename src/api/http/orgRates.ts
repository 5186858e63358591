import type { Context } from 'koa'
import { AppError } from '../../errors.ts'
import type { Plan } from '../../events/org.ts'
import type { FairTurns } from '../../loops/fairTurns.ts'
import { termsOf } from '../../plans/plans.ts'
import type { RateLimit, RateLimiter } from '../../ports/rateLimiter.ts'
import type { Directory } from '../../projections/directory.ts'

interface Rate {
  readonly limit: RateLimit
  /** The `RateLimit-Policy` header: the quota in a window of one second. */
  readonly policy: string
}

/** The requests of one second may arrive at once. */
const rateOf = (perSecond: number): Rate => ({
  limit: { perSecond, burst: perSecond },
  policy: `"org";q=${perSecond};w=1`,
})

const rates = new Map<Plan, Rate>(
  Object.entries(termsOf).flatMap(([plan, { requestsPerSecond }]) =>
    requestsPerSecond === null ? [] : [[plan as Plan, rateOf(requestsPerSecond)]],
  ),
)

/** Limits the requests of each organization on all nodes together (SPEC.md, Limits). */
export class OrgRates {
  readonly #limiter: RateLimiter
  readonly #directory: Pick<Directory, 'env'>

  readonly #turns: FairTurns

  constructor({
    limiter,
    directory,
    turns,
  }: {
    limiter: RateLimiter
    directory: Pick<Directory, 'env'>
    turns: FairTurns
  }) {
    this.#limiter = limiter
    this.#directory = directory
    this.#turns = turns
  }

  /**
   * Counts a request of the environment's organization and sets the headers of its reply. Resolves when it is the turn
   * of the organization. Rejects with `rate_limit_exceeded`. Returns null if the request may continue at once: a promise
   * for each request would cost time.
   */
  take(ctx: Pick<Context, 'set'>, env_id: string): Promise<void> | null {
    const env = this.#directory.env(env_id)
    const rate = env && rates.get(env.plan)
    const turn = this.#turns.take(env?.org_id ?? env_id)
    return rate ? this.#take(ctx, env.org_id, rate, turn) : turn
  }

  async #take(
    ctx: Pick<Context, 'set'>,
    org_id: string,
    { limit, policy }: Rate,
    turn: Promise<void> | null,
  ): Promise<void> {
    if (turn) await turn
    const { allowed, remaining, retryAfterMs, resetMs } = await this.#limiter.take(org_id, limit)
    ctx.set('RateLimit-Policy', policy)
    ctx.set('RateLimit', `"org";r=${remaining};t=${Math.ceil(resetMs / 1000)}`)
    if (allowed) return
    throw new AppError(
      'rate_limit_exceeded',
      `The plan of the organization allows ${limit.perSecond} requests per second`,
      { data: { retryAfter: Math.max(1, Math.ceil(retryAfterMs / 1000)) } },
    )
  }
}
