import { messageOf } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { Backoff } from '../loops/backoff.ts'

/** Pauses between attempts to begin a run while its build or its input cannot be read. */
const OUTAGE_PAUSES = { firstMs: 100, longestMs: 5000 }

/** A run that could not begin. */
interface Delayed {
  readonly run_id: string
  /** Aborts when the run is cancelled or returned. */
  readonly signal: AbortSignal
}

/** Runs wait here while builds or inputs cannot be read. An outage is logged once. */
export class OutageWait {
  readonly #logger: Logger
  #isLogged = false
  readonly #pauses = new WeakMap<AbortSignal, Backoff>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Resolves after the next pause of the run. */
  async pause({ run_id, signal }: Delayed, error: unknown): Promise<void> {
    if (!this.#isLogged)
      this.#logger.warn('The build or the input of a run cannot be read; runs wait until it can', {
        run_id,
        error: messageOf(error),
      })
    this.#isLogged = true
    const backoff = this.#pauses.get(signal) ?? new Backoff(OUTAGE_PAUSES)
    this.#pauses.set(signal, backoff)
    await backoff.pause({ signal, ref: false })
  }

  /** A run has begun, so the outage is over. */
  over(): void {
    this.#isLogged = false
  }
}
