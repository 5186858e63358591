import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import type { RateLimit, RateLimiter } from '../ports/rateLimiter.ts'
import type { Directory } from '../projections/directory.ts'
import { termsOf } from './plans.ts'

/** What a function does by itself: it starts a run (`send`, `call`, `run`), sends live data (`emit`), or is due by its schedule. */
export type Taking = 'start' | 'emit' | 'tick'

/** Emits that cost as much as one request: token streams have up to 100 per second, also on the smallest plan. */
const EMITS_PER_REQUEST = 20

/** A host call that would wait for longer is refused, milliseconds. */
const LONGEST_WAIT_MS = 30_000

/** Waits for the turns of one run, so that its calls keep their order. */
export interface Turns {
  /** `isDone`: whether another node has done it meanwhile, so that it does not count twice. */
  take(taking: Taking, isDone?: () => Promise<boolean>): Promise<void>
}

/** Host calls that wait for the same rate. */
interface Line {
  length: number
  last: Promise<void>
}

/**
 * The rates of an organization's functions, equal to the rates of its requests but counted apart: a function that starts
 * many runs does not use up the requests with which its owner could cancel it.
 */
export class FunctionRates {
  readonly #limiter: RateLimiter
  readonly #directory: Pick<Directory, 'env'>
  readonly #lines = new Map<string, Line>()

  constructor({ limiter, directory }: { limiter: RateLimiter; directory: Pick<Directory, 'env'> }) {
    this.#limiter = limiter
    this.#directory = directory
  }

  /** Returns null if the plan has no rate: a promise for each host call would cost time. */
  turnsOf(env_id: string, signal: AbortSignal): Turns | null {
    const env = this.#directory.env(env_id)
    const rate = env && rates.get(env.plan)
    if (!rate) return null
    const { org_id } = env
    let last: Promise<void> = Promise.resolve()
    return {
      take: (taking, isDone) => {
        const turn = last.then(() => this.#take(`${org_id}/${taking}`, rate[taking], { signal, isDone }))
        last = turn.catch(() => {})
        return turn
      },
    }
  }

  /**
   * Resolves when it is the caller's turn; turns are first come, first served. Rejects with `rate_limit_exceeded` if that
   * would take too long, or when the signal aborts.
   */
  async #take(
    key: string,
    limit: RateLimit,
    { signal, isDone }: { signal: AbortSignal; isDone: (() => Promise<boolean>) | undefined },
  ): Promise<void> {
    const line = this.#lines.get(key) ?? { length: 0, last: Promise.resolve() }
    const over = clock.monotonic() + LONGEST_WAIT_MS
    if ((line.length * 1000) / limit.perSecond > LONGEST_WAIT_MS) throw tooMany(limit)
    const { last } = line
    const done = Promise.withResolvers<void>()
    line.last = done.promise
    line.length++
    this.#lines.set(key, line)
    try {
      await last
      for (;;) {
        if (signal.aborted) throw new AppError('conflict', 'The run was stopped')
        if (await isDone?.()) return
        const { allowed, retryAfterMs } = await this.#limiter.take(key, limit)
        if (allowed) return
        if (clock.monotonic() + retryAfterMs > over) throw tooMany(limit) // other nodes took the turns
        await delay(retryAfterMs, undefined, { signal, ref: false }).catch(() => {})
      }
    } finally {
      done.resolve()
      if (--line.length === 0) this.#lines.delete(key)
    }
  }
}

const rates = new Map<string, Readonly<Record<Taking, RateLimit>>>(
  Object.entries(termsOf).flatMap(([plan, { requestsPerSecond }]) => {
    if (requestsPerSecond === null) return []
    const emits = requestsPerSecond * EMITS_PER_REQUEST
    const starts = { perSecond: requestsPerSecond, burst: requestsPerSecond }
    return [
      [
        plan,
        {
          start: starts,
          tick: starts, // counted apart: runs do not wait behind the ticks of a full minute
          emit: { perSecond: emits, burst: emits },
        },
      ],
    ]
  }),
)

const tooMany = ({ perSecond }: RateLimit): AppError =>
  new AppError(
    'rate_limit_exceeded',
    `The plan of the organization allows its functions ${perSecond} of these per second, and those that wait ` +
      `take more than ${LONGEST_WAIT_MS / 1000} s`,
  )
