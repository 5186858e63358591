import { clock } from '../clock.ts'
import { isRetryable } from '../errors.ts'

const FIRST_EVENTS = 256
const LEAST_EVENTS = 16
const MOST_EVENTS = 1 << 20
/** The target duration of a part. */
const TARGET_MS = 2000
/** How much larger the next part is, at most; and how fast that is reached again after an error. */
const MOST_GROWTH = 4
const GROWTH_STEP = 0.02

/**
 * The parts in which a batch is stored, adapted to the speed of the engine. The projector repeats a batch from its checkpoint after an
 * error, so a slow server might never store a large one as a whole. A fast engine soon gets whole batches.
 */
export class Parts {
  #most = FIRST_EVENTS
  #growth = MOST_GROWTH

  /** Stores all events of a batch, part by part. */
  async store<T>(
    events: readonly T[],
    store: (part: readonly T[], isLast: boolean) => Promise<void>,
  ): Promise<void> {
    let from = 0
    do {
      const part = events.slice(from, from + this.#most)
      from += part.length
      const began = clock.monotonic()
      try {
        await store(part, from >= events.length)
      } catch (error) {
        if (isRetryable(error)) this.#failed(part.length)
        throw error
      }
      this.#stored(part.length, clock.monotonic() - began)
    } while (from < events.length)
  }

  #failed(events: number): void {
    this.#growth = 1
    this.#resize(events / 4)
  }

  #stored(events: number, ms: number): void {
    this.#growth = Math.min(MOST_GROWTH, this.#growth + GROWTH_STEP)
    const best = (events * TARGET_MS) / Math.max(1, ms)
    if (best < this.#most || events === this.#most) this.#resize(Math.min(best, this.#growth * this.#most))
  }

  #resize(events: number): void {
    this.#most = Math.round(Math.min(Math.max(events, LEAST_EVENTS), MOST_EVENTS))
  }
}
