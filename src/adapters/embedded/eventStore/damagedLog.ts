import { PermanentError } from '../../../errors.ts'

/** The error for events that were stored and cannot be read. They are never taken for other facts, nor for none. */
export const damagedLog = (first: number, last: number, reason: string, cause?: unknown): PermanentError =>
  new PermanentError(
    'internal_server_error',
    `log.db is damaged: ${eventsAt(first, last)} cannot be read (${reason}); stop the service and restore the log ` +
      'from a backup (docs/operations.md, Damage)',
    { cause },
  )

const eventsAt = (first: number, last: number): string =>
  first === last
    ? `the event at position ${first}`
    : `the ${last - first + 1} events at positions ${first} to ${last}`
