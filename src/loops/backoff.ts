import { setTimeout as delay } from 'node:timers/promises'

/** Pauses between attempts: the first, then `factor` (default 2) times the one before, up to the longest. */
export interface Pauses {
  readonly firstMs: number
  readonly longestMs: number
  readonly factor?: number
}

/** Returns the pause after so many failures (from 0) without a success, without jitter. */
export const pauseAfter = (failures: number, { firstMs, longestMs, factor = 2 }: Pauses): number =>
  Math.min(firstMs * factor ** failures, longestMs)

/** Spreads a pause over half to one and a half times its length, so that nodes do not return in step. */
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

  /** Waits for the next pause or until the signal aborts; never rejects. With `ref: false` the process may end meanwhile. */
  async pause({ signal, ref = true }: { signal?: AbortSignal; ref?: boolean } = {}): Promise<void> {
    await delay(this.next(), undefined, { ref, ...(signal && { signal }) }).catch(() => {})
  }

  reset(): void {
    this.#failures = 0
  }
}
