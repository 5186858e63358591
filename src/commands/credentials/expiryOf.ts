import { clock, isoOf } from '../../clock.ts'
import { AppError } from '../../errors.ts'

/** The time in `seconds` from now, ISO 8601. Throws `bad_request` unless it is a whole number from 1 to `longest`. */
export const expiryOf = (seconds: number, longest: number): string => {
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > longest)
    throw new AppError(
      'bad_request',
      `expires_in: expected a whole number of seconds from 1 to ${longest}, got ${seconds}`,
    )
  return isoOf(clock.now() + seconds * 1000)
}
