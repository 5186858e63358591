import { BoundedMap } from '../boundedMap.ts'
import type { InProgress } from './inProgress.ts'

/** Number of remembered claims. A delivery arrives within seconds after its append. */
const REMEMBERED = 4096

/**
 * The events and runs that this process stores and claims in one append. Their later delivery must not claim them
 * again, even if it arrives before the reply to that append.
 */
export class DirectClaims {
  readonly #claimed = new BoundedMap<string, true>(REMEMBERED)
  readonly #underWay = new Map<string, Promise<void>>()
  readonly #inProgress: InProgress

  constructor(inProgress: InProgress) {
    this.#inProgress = inProgress
  }

  /** Does the append that claims. A delivery of `id` waits until it is done. */
  async during<T>(id: string, append: () => Promise<T>): Promise<T> {
    const answered = Promise.withResolvers<void>()
    this.#underWay.set(id, answered.promise)
    this.#inProgress.begin()
    try {
      return await append()
    } finally {
      this.#underWay.delete(id)
      // after the caller has added its claim
      setImmediate(() => {
        answered.resolve()
        this.#inProgress.end()
      })
    }
  }

  add(id: string): void {
    this.#claimed.set(id, true)
  }

  /** The run was returned: its next delivery may claim it. */
  forget(id: string): void {
    this.#claimed.delete(id)
  }

  /** Resolves with whether `id` was claimed in the append that stored it. */
  async has(id: string): Promise<boolean> {
    await this.#underWay.get(id)
    return this.#claimed.get(id) ?? false
  }
}
