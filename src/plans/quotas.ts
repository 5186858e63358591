import { BoundedMap } from '../boundedMap.ts'
import { clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { atMost } from '../loops/deadline.ts'
import type { Quota as FileQuota } from '../content/fileQuota.ts'
import { termsOf, UNLIMITED, type UsageLimits } from './plans.ts'
import type { DirectoryEnv } from '../projections/directory.ts'
import type { Views } from '../projections/views.ts'
import { type Usage, usageModels, usageOf } from './usage.ts'

/** What somebody wants more of. */
interface Wish {
  readonly limit: keyof UsageLimits
  readonly used: (usage: Usage) => number
  readonly more: number
  readonly what: string
}

/** A run, and whatever it keeps. */
const ONE_RUN: readonly Wish[] = [
  { limit: 'runs_per_month', used: (usage) => usage.runs_this_period, more: 1, what: 'runs per month' },
  {
    limit: 'call_storage_bytes',
    used: (usage) => usage.call_storage_bytes,
    more: 1,
    what: 'bytes of events and runs',
  },
]

/** What is known of an organization's usage. */
interface Look {
  usage: Usage | null
  /** Monotonic milliseconds. */
  lookedAt: number
  underWay: Promise<void> | null
}

/** Far from its limits an organization's usage is looked at again after this long. */
const FRESH_MS = 1000
/** Above this part of a limit it is looked at each time. */
const NEAR = 0.98
const LONGEST_LOOK_MS = 500
const KEPT_ORGS = 10_000

/**
 * Refuses what the plan of an organization has no room for (SPEC.md, Usage and limits).
 * Q1: where the plan has no limit nothing is looked at.
 * Q2: what is in the log counts; requests that are under way together may pass together.
 * Q3: read models that are behind, or away, refuse nothing: the usage known last counts, or none.
 */
export class Quotas implements FileQuota {
  readonly #views: Views
  readonly #looks = new BoundedMap<string, Look>(KEPT_ORGS)

  constructor(views: Views) {
    this.#views = views
  }

  /** Rejects with `quota_exceeded` when the organization of the environment may start no more runs, or keep no more of them. */
  checkRun(env_id: string): Promise<void> {
    return this.#check(env_id, ONE_RUN)
  }

  /** Bytes one file of the environment may have. */
  maxFileBytes(env_id: string): number {
    return termsOf[this.#views.directory.env(env_id)?.plan ?? 'free'].maxFileBytes
  }

  /** Rejects with `quota_exceeded` when the files of the organization may not have so many bytes more (fewer, when negative). */
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
    else if (clock.monotonic() - look.lookedAt > FRESH_MS) void this.#refresh(look, env, limits)
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

  /** Those who ask while a look is under way share it. Never rejects (Q3). */
  #refresh(look: Look, { org_id }: DirectoryEnv, limits: UsageLimits): Promise<void> {
    look.underWay ??= this.#look(org_id, limits)
      .then(
        (usage) => void (look.usage = usage),
        () => {},
      )
      .finally(() => {
        look.lookedAt = clock.monotonic()
        look.underWay = null
      })
    return look.underWay
  }

  async #look(org_id: string, limits: UsageLimits): Promise<Usage> {
    await this.#views.settled(...usageModels) // Q2
    return usageOf(this.#views, { org_id, limits, nowMs: clock.now() })
  }
}
