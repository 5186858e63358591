import { AppError } from '../errors.ts'
import type { Cause } from '../events/event.ts'
import type { ActorType } from '../events/actor.ts'
import type { Plan } from '../events/org.ts'
import type { RateLimiter } from '../ports/rateLimiter.ts'
import type { Directory } from '../projections/directory.ts'
import { termsOf } from './plans.ts'

const DAY_S = 86_400
const MB = 1 << 20

/** The least bytes that one change takes in the log, with its ids, its time and its actor. */
const FACT_BYTES = 400

/** Each has its own amount: uses of service keys are recorded for each minute of requests, and must leave room for changes. */
type Counted = 'changes' | 'uses'

/** The actors of the service itself and of its operator are not counted. */
const COUNTED: ReadonlySet<ActorType | undefined> = new Set([
  'api-key',
  'session',
  'service-key',
  'client',
  'run',
])

/**
 * Limits the bytes of changes that an organization asks for: they remain in the log for ever, also when what they created is
 * deleted. The amount of a day may be used at once, and returns evenly. Commands that only end something are not counted, because
 * each of them needs an earlier change.
 */
export class ChangeRates {
  readonly #limiter: RateLimiter
  #directory: Pick<Directory, 'env'> | undefined

  constructor(limiter: RateLimiter) {
    this.#limiter = limiter
  }

  /** Nothing is counted until the plans are known. */
  follow(directory: Pick<Directory, 'env'>): void {
    this.#directory = directory
  }

  /** Counts a command. Returns null if no plan limits it: a promise for each one would cost time. */
  readonly admit = (
    { env_id, actor_type }: Cause,
    command: object,
    counted: Counted = 'changes',
  ): Promise<void> | null => {
    if (env_id === undefined || !COUNTED.has(actor_type)) return null
    const env = this.#directory?.env(env_id)
    const most = env && termsOf[env.plan].changedBytesPerDay
    if (!env || most === null || most === undefined) return null
    return this.#take(env, counted, { most, bytes: FACT_BYTES + JSON.stringify(command).length })
  }

  /** Rejects with `rate_limit_exceeded`. */
  async #take(
    { org_id, plan }: { org_id: string; plan: Plan },
    counted: Counted,
    { most, bytes }: { most: number; bytes: number },
  ): Promise<void> {
    // A request is one unit of the limiter, so the unit is the size of this change.
    const limit = { perSecond: most / DAY_S / bytes, burst: Math.floor(most / bytes) }
    const { allowed, retryAfterMs } = await this.#limiter.take(`${org_id}/${counted}`, limit)
    if (allowed) return
    throw new AppError(
      'rate_limit_exceeded',
      `The plan ${plan} allows changes of ${most / MB} MiB per day to projects, builds, files, context variables, ` +
        'sessions and service keys; send the request again later, or ask the operator for a higher plan',
      { data: { retryAfter: Math.max(1, Math.ceil(retryAfterMs / 1000)) } },
    )
  }
}
