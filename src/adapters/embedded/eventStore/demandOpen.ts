import { AppError } from '../../../errors.ts'

/** Throws `unavailable` if the event store is closed. */
export const demandOpen = (closing: AbortSignal): void => {
  if (closing.aborted) throw new AppError('unavailable', 'The event store is closed')
}
