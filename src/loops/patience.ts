import { AppError, isAppError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { Backoff } from './backoff.ts'
import { unlessAborted } from './deadline.ts'

/** Repeats a step until it is not refused as `unavailable`. Any other failure is that of the step. */
export type Patiently = <T>(step: () => Promise<T>) => Promise<T>

/** Pauses between attempts. */
const PAUSES = { firstMs: 100, longestMs: 2000 }

/** Opens the patience of a start with engines that are down. It ends with `unavailable` when the signal aborts. */
export const openPatience = ({
  logger,
  signal,
  waiting,
}: {
  readonly logger: Logger
  readonly signal: AbortSignal
  /** Receives the reason for waiting; null when the step has succeeded. */
  readonly waiting: (reason: string | null) => void
}): Patiently => {
  return async (step) => {
    let logged: string | null = null
    const backoff = new Backoff(PAUSES)
    for (;;) {
      try {
        const value = await step()
        if (logged !== null) waiting(null)
        return value
      } catch (error) {
        if (!isAppError(error, 'unavailable')) throw error
        demandStarting(signal)
        waiting(error.message)
        if (error.message !== logged) logger.warn(`${error.message}; retrying until it answers`)
        logged = error.message
      }
      await backoff.pause({ signal })
      demandStarting(signal)
    }
  }
}

/** Refuses to continue a start that was given up. */
export const demandStarting = (signal: AbortSignal): void => {
  if (signal.aborted) throw givenUp()
}

/** Settles as the work does, or rejects when the start is given up. The work then continues, and its result is dropped. */
export const whileStarting = <T>(signal: AbortSignal, work: Promise<T>): Promise<T> =>
  unlessAborted(signal, work, givenUp)

const givenUp = (): AppError => new AppError('unavailable', 'The service was stopped while it started')
