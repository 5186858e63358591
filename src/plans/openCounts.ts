import { AppError } from '../errors.ts'
import type { Directory } from '../projections/directory.ts'
import { termsOf } from './plans.ts'

const WHAT = {
  streams: 'open live streams; close one first',
  buildUploads: 'uploads of builds at a time; wait until one has ended',
} as const

/** A refused client may try again after this time. */
const RETRY_AFTER_S = 5

/** Counts what each organization has open on this node, because it occupies memory, connections and disk here. */
export class OpenCounts {
  readonly #directory: Pick<Directory, 'env'>
  readonly #open = new Map<string, number>()

  constructor(directory: Pick<Directory, 'env'>) {
    this.#directory = directory
  }

  /** The number that all organizations together have open here. */
  total(what: keyof typeof WHAT): number {
    let total = 0
    for (const [key, open] of this.#open) if (key.startsWith(`${what}/`)) total += open
    return total
  }

  /** Counts one more until the returned function is called. Throws `rate_limit_exceeded` beyond the plan. */
  enter(env_id: string, what: keyof typeof WHAT): () => void {
    const env = this.#directory.env(env_id)
    const key = `${what}/${env?.org_id ?? env_id}`
    const open = this.#open.get(key) ?? 0
    const most = termsOf[env?.plan ?? 'self_host'].counts[what]
    if (open >= most)
      throw new AppError(
        'rate_limit_exceeded',
        `The plan of the organization allows ${most} ${WHAT[what]} on each node`,
        { data: { retryAfter: RETRY_AFTER_S } },
      )
    this.#open.set(key, open + 1)
    let left = false
    return () => {
      if (left) return
      left = true
      const now = (this.#open.get(key) ?? 1) - 1
      if (now > 0) this.#open.set(key, now)
      else this.#open.delete(key)
    }
  }
}
