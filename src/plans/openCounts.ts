import { AppError } from '../errors.ts'
import type { Directory } from '../projections/directory.ts'
import { termsOf } from './plans.ts'

const WHAT = {
  streams: 'open live streams; close one first',
  buildUploads: 'uploads of builds at a time; wait until one has ended',
  spooledParts: 'parts without Content-Length at a time; send it, or wait until one has ended',
} as const

/** A refused client may try again after this time. */
const RETRY_AFTER_S = 5

/** Counts what each organization has open on this node, because it occupies memory, connections and disk here. */
export class OpenCounts {
  readonly #directory: Pick<Directory, 'env'>
  readonly #ofOrgs = new Map<string, number>()
  readonly #ofEnvs = new Map<string, number>()

  constructor(directory: Pick<Directory, 'env'>) {
    this.#directory = directory
  }

  /** The number that all organizations together have open here. */
  total(what: keyof typeof WHAT): number {
    let total = 0
    for (const [key, open] of this.#ofOrgs) if (key.startsWith(`${what}/`)) total += open
    return total
  }

  inOrg(org_id: string, what: keyof typeof WHAT): number {
    return this.#ofOrgs.get(`${what}/${org_id}`) ?? 0
  }

  inEnv(env_id: string, what: keyof typeof WHAT): number {
    return this.#ofEnvs.get(`${what}/${env_id}`) ?? 0
  }

  /** Counts one more until the returned function is called. Throws `rate_limit_exceeded` beyond the plan. */
  enter(env_id: string, what: keyof typeof WHAT): () => void {
    const env = this.#directory.env(env_id)
    const org_id = env?.org_id ?? env_id
    const most = termsOf[env?.plan ?? 'self_host'].counts[what]
    if (this.inOrg(org_id, what) >= most)
      throw new AppError(
        'rate_limit_exceeded',
        `The plan of the organization allows ${most} ${WHAT[what]} on each node`,
        { data: { retryAfter: RETRY_AFTER_S } },
      )
    const count = (by: 1 | -1): void => {
      add(this.#ofOrgs, `${what}/${org_id}`, by)
      add(this.#ofEnvs, `${what}/${env_id}`, by)
    }
    count(1)
    let left = false
    return () => {
      if (!left) count(-1)
      left = true
    }
  }

  /** Counts one more while the work runs. Rejects with `rate_limit_exceeded` beyond the plan. */
  async during<T>(env_id: string, what: keyof typeof WHAT, work: () => Promise<T>): Promise<T> {
    const leave = this.enter(env_id, what)
    try {
      return await work()
    } finally {
      leave()
    }
  }
}

const add = (counts: Map<string, number>, key: string, by: number): void => {
  const now = (counts.get(key) ?? 0) + by
  if (now > 0) counts.set(key, now)
  else counts.delete(key)
}
