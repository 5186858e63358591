import { clock } from '../clock.ts'
import { isRetryable, messageOf, PermanentError, stackOf } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { Backoff, type Pauses } from './backoff.ts'

/** Parameters shared by the background loops of one node. */
export interface Background {
  /** Aborts when the loops must end. */
  readonly signal: AbortSignal
  readonly logger: Logger
  /** Called with a reason for the operator when a loop stays stopped. */
  readonly onGivenUp?: ((reason: string) => void) | undefined
}

const PAUSES: Pauses = { firstMs: 50, longestMs: 2000 }
/** After a loop ran this long, its next interruption is logged as a new outage. No call of an engine waits as long for its answer. */
const UP_MS = 10_000

/** Restarts after a defect take two minutes in all: pauses of 1, 2, 4 … 64 seconds. */
const RESTARTS: Pauses = { firstMs: 1000, longestMs: 64_000 }
const MAX_RESTARTS = 7
/** After a loop ran this long, it has recovered from its defect. */
const RECOVERED_MS = 60_000

/**
 * Runs a loop until the signal aborts, and restarts it when it ends earlier.
 * G1: after a retryable error (an engine is unavailable), it is restarted without a limit (I9).
 * G2: after any other error (a defect) it is restarted `MAX_RESTARTS` times, then stays stopped and is reported.
 *     A `PermanentError` stops it at once.
 * G3: each defect is logged with its stack, each outage once.
 */
export const keepGoing = async (
  name: string,
  loop: (signal: AbortSignal) => Promise<void>,
  { signal, logger, onGivenUp, restarts = RESTARTS }: Background & { readonly restarts?: Pauses },
): Promise<void> => {
  const outage = new Backoff(PAUSES)
  const defect = new Backoff(restarts)
  let defects = 0
  let isLogged = false
  while (!signal.aborted) {
    const began = clock.monotonic()
    let failure: { readonly error: unknown } | undefined
    try {
      await loop(signal)
    } catch (error) {
      failure = { error }
    }
    if (signal.aborted) return
    const ranMs = clock.monotonic() - began
    if (ranMs > UP_MS) {
      outage.reset()
      isLogged = false
    }
    if (ranMs > RECOVERED_MS) {
      defect.reset()
      defects = 0
    }
    if (!failure || isRetryable(failure.error)) {
      if (failure && !isLogged)
        logger.warn(`${name} was interrupted and is retried until it succeeds`, {
          error: messageOf(failure.error),
        })
      isLogged ||= failure !== undefined
      await outage.pause({ signal }) // G1
      continue
    }
    const isPermanent = failure.error instanceof PermanentError
    if (++defects > MAX_RESTARTS || isPermanent) {
      const reason = isPermanent
        ? `${name} was stopped`
        : `${name} failed ${defects} times in a row and was stopped` // G2
      logger.error(`${reason}; remove the cause, then restart the node`, { error: stackOf(failure.error) })
      onGivenUp?.(`${reason}: ${messageOf(failure.error)}`)
      return
    }
    logger.error(`${name} failed and is restarted`, { error: stackOf(failure.error) }) // G3
    await defect.pause({ signal })
  }
}
