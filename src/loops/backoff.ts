import { setTimeout as delay } from 'node:timers/promises'

/** Pauses between attempts: the first, then each `factor` (default 2) times the previous, up to the longest. */
export interface Pauses {
  readonly firstMs: number
  readonly longestMs: number
  readonly factor?: number
}

/** Returns the pause after `failures` (from 0) consecutive failures, without jitter. */
export const pauseAfter = (failures: number, { firstMs, longestMs, factor = 2 }: Pauses): number =>
  Math.min(firstMs * factor ** failures, longestMs)

/** Returns 50 to 150 % of a pause at random, so that nodes do not retry at the same time. */
export const jittered = (ms: number): number => ms * (0.5 + Math.random())

/** The pauses of one loop: each call of `next` or `pause` counts a failure, `reset` a success. */
export class Backoff {
  readonly #pauses: Pauses
  #failures = 0

  constructor(pauses: Pauses) {
    this.#pauses = pauses
  }

  /** Returns the next pause in milliseconds, with jitter. */
  next(): number {
    return jittered(pauseAfter(this.#failures++, this.#pauses))
  }

  /**
   * Waits for the next pause or until the signal aborts; never rejects. With `ref: false` the process may end
   * meanwhile.
   */
  async pause({ signal, ref = true }: { signal?: AbortSignal; ref?: boolean } = {}): Promise<void> {
    await delay(this.next(), undefined, { ref, signal }).catch(() => {})
  }

  reset(): void {
    this.#failures = 0
  }
}
