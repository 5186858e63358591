import { BoundedMap } from '../boundedMap.ts'
import { clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { atMost } from '../loops/deadline.ts'
import type { FileQuota } from '../content/fileQuota.ts'
import { termsOf, UNLIMITED, type UsageLimits } from './plans.ts'
import type { DirectoryEnv } from '../projections/directory.ts'
import type { Views } from '../projections/views.ts'
import { type Usage, usageModels, usageOf } from './usage.ts'

/** An increase that a request would cause. */
interface Wish {
  readonly limit: keyof UsageLimits
  readonly used: (usage: Usage) => number
  readonly more: number
  readonly what: string
}

/** At least one byte of stored data. */
const MORE_DATA: Wish = {
  limit: 'call_storage_bytes',
  used: (usage) => usage.call_storage_bytes,
  more: 1,
  what: 'bytes of events and runs',
}

const ONE_RUN: readonly Wish[] = [
  { limit: 'runs_per_month', used: (usage) => usage.runs_this_period, more: 1, what: 'runs per month' },
  MORE_DATA,
]

/** The last known usage of an organization. */
interface Look {
  usage: Usage | null
  /** Monotonic milliseconds. */
  lookedAt: number
  underWay: Promise<void> | null
}

/** Usage below `NEAR` is read again after this time. */
const FRESH_MS = 1000
/** Above this share of a limit, usage is read for each request. */
const NEAR = 0.98
const LONGEST_LOOK_MS = 500
const KEPT_ORGS = 10_000

/**
 * Refuses requests that exceed the plan of an organization (SPEC.md, Usage and limits).
 * Q1: usage is not read if the plan has no limit.
 * Q2: everything in the log counts; concurrent requests may pass together.
 * Q3: if read models are behind or unavailable, the last known usage applies; without one, every request is allowed.
 */
export class Quotas implements FileQuota {
  readonly #views: Views
  readonly #time: Pick<typeof clock, 'monotonic'>
  readonly #looks = new BoundedMap<string, Look>(KEPT_ORGS)

  constructor(views: Views, time: Pick<typeof clock, 'monotonic'> = clock) {
    this.#views = views
    this.#time = time
  }

  /** Rejects with `quota_exceeded` when the organization of the environment may not start or store another run. */
  checkRun(env_id: string): Promise<void> {
    return this.#check(env_id, ONE_RUN)
  }

  /**
   * Rejects with `quota_exceeded` when the organization of the environment may store no more data of runs. Returns null if
   * the plan has no limit: a promise for each emit would cost time.
   */
  checkData(env_id: string): Promise<void> | null {
    const env = this.#views.directory.env(env_id)
    if (!env || termsOf[env.plan].limits[MORE_DATA.limit] === UNLIMITED) return null
    return this.#check(env_id, [MORE_DATA])
  }

  /** Returns the maximum size of one file of the environment in bytes. */
  maxFileBytes(env_id: string): number {
    return termsOf[this.#views.directory.env(env_id)?.plan ?? 'free'].maxFileBytes
  }

  /** Rejects with `quota_exceeded` when the plan does not allow `bytes` more for the files of the organization. */
  async checkRoom(env_id: string, bytes: number): Promise<void> {
    const used = (usage: Usage) => usage.file_storage_bytes
    if (bytes > 0)
      await this.#check(env_id, [{ limit: 'storage_bytes', used, more: bytes, what: 'bytes of files' }])
  }

  async #check(env_id: string, wishes: readonly Wish[]): Promise<void> {
    const env = this.#views.directory.env(env_id)
    if (!env) return
    const { limits } = termsOf[env.plan]
    const limited = wishes.filter(({ limit }) => limits[limit] !== UNLIMITED)
    if (limited.length === 0) return // Q1
    const look = this.#lookAt(env.org_id)
    const isNear = ({ limit, used, more }: Wish) =>
      !look.usage || used(look.usage) + more > limits[limit] * NEAR
    if (limited.some(isNear)) await atMost(LONGEST_LOOK_MS, this.#refresh(look, env, limits))
    else if (this.#time.monotonic() - look.lookedAt > FRESH_MS) void this.#refresh(look, env, limits)
    const { usage } = look
    const over = usage && limited.find(({ limit, used, more }) => used(usage) + more > limits[limit])
    if (over)
      throw new AppError('quota_exceeded', `The plan ${env.plan} allows ${limits[over.limit]} ${over.what}`)
  }

  #lookAt(org_id: string): Look {
    const known = this.#looks.get(org_id)
    if (known) return known
    const look: Look = { usage: null, lookedAt: 0, underWay: null }
    this.#looks.set(org_id, look)
    return look
  }

  /** Concurrent callers share one read. Never rejects (Q3). */
  #refresh(look: Look, { org_id }: DirectoryEnv, limits: UsageLimits): Promise<void> {
    look.underWay ??= this.#look(org_id, limits)
      .then(
        (usage) => void (look.usage = usage),
        () => {},
      )
      .finally(() => {
        look.lookedAt = this.#time.monotonic()
        look.underWay = null
      })
    return look.underWay
  }

  async #look(org_id: string, limits: UsageLimits): Promise<Usage> {
    await this.#views.settled(...usageModels) // Q2
    return usageOf(this.#views, { org_id, limits, nowMs: clock.now() })
  }
}
