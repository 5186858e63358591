import { BoundedMap } from '../boundedMap.ts'

/** Claims that are remembered: a delivery comes within seconds of its append. */
const REMEMBERED = 4096

/**
 * The events and runs that this process publishes or requests and claims in one append. Their delivery, which can come
 * before the answer to that append, has nothing left to claim.
 */
export class DirectClaims {
  readonly #claimed = new BoundedMap<string, true>(REMEMBERED)
  readonly #underWay = new Map<string, Promise<void>>()

  /** Does the append that claims; a delivery of `id` waits meanwhile. */
  async during<T>(id: string, append: () => Promise<T>): Promise<T> {
    const answered = Promise.withResolvers<void>()
    this.#underWay.set(id, answered.promise)
    try {
      return await append()
    } finally {
      this.#underWay.delete(id)
      setImmediate(answered.resolve) // after the caller has added its claim
    }
  }

  add(id: string): void {
    this.#claimed.set(id, true)
  }

  /** Whether `id` was claimed in the append that stored it, once that is known. */
  async has(id: string): Promise<boolean> {
    await this.#underWay.get(id)
    return this.#claimed.get(id) ?? false
  }
}
