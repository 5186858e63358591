import { isRetryable } from '../errors.ts'

const LEAST_EVENTS = 16
const MOST_EVENTS = 1 << 20

/**
 * The parts in which a batch is stored. The projector repeats a batch from its beginning after an error, so a slow server might
 * never store a large one as a whole: after each error, parts have a quarter of the events, and after each success twice as many.
 */
export class Parts {
  #most = MOST_EVENTS

  /** Stores all events of a batch, part by part. */
  async store<T>(
    events: readonly T[],
    store: (part: readonly T[], isLast: boolean) => Promise<void>,
  ): Promise<void> {
    let from = 0
    do {
      const part = events.slice(from, from + this.#most)
      from += part.length
      try {
        await store(part, from >= events.length)
      } catch (error) {
        if (isRetryable(error)) this.#most = Math.max(LEAST_EVENTS, Math.ceil(part.length / 4))
        throw error
      }
      if (part.length === this.#most) this.#most = Math.min(MOST_EVENTS, 2 * this.#most)
    } while (from < events.length)
  }
}
