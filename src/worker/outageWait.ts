import { BoundedMap } from '../boundedMap.ts'
import { messageOf, reasonOf } from '../errors.ts'
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

/** Number of reasons that are remembered as logged. */
const REASONS = 1024

/**
 * Runs wait here while builds or inputs cannot be read. Each reason is logged once, until a run that it delayed begins or no run
 * is delayed: the zip of one build may be missing for long, while the runs of others begin.
 */
export class OutageWait {
  readonly #logger: Logger
  readonly #logged = new BoundedMap<string, true>(REASONS)
  readonly #delayed = new Map<AbortSignal, { readonly backoff: Backoff; readonly reason: string }>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Resolves after the next pause of the run. */
  async pause({ run_id, signal }: Delayed, error: unknown): Promise<void> {
    const reason = reasonFor(error)
    if (!this.#logged.get(reason))
      this.#logger.warn('The build or the input of a run cannot be read; runs wait until it can', {
        run_id,
        error: messageOf(error),
      })
    this.#logged.set(reason, true)
    const backoff = this.#delayed.get(signal)?.backoff ?? new Backoff(OUTAGE_PAUSES)
    this.#delayed.set(signal, { backoff, reason })
    await backoff.pause({ signal, ref: false })
  }

  /** The run begins, so what delayed it is over. */
  over(signal: AbortSignal): void {
    const delayed = this.#delayed.get(signal)
    if (delayed) this.#logged.delete(delayed.reason)
    this.leave(signal)
  }

  /** The run waits no more, whether it begins or not. */
  leave(signal: AbortSignal): void {
    if (this.#delayed.delete(signal) && this.#delayed.size === 0) this.#logged.clear()
  }
}

/** Equal for all attempts during one outage: the message of an error of the system may contain a path of one attempt. */
const reasonFor = (error: unknown): string =>
  reasonOf(error instanceof Error && error.cause !== undefined ? error.cause : error)
