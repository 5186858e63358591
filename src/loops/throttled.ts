import { clock } from '../clock.ts'
import type { Logger } from '../logger.ts'

/** A message that many callers log during one outage is written once in this time, milliseconds. */
const EVERY_MS = 60_000

/**
 * Returns a function that logs a warning at most once in `everyMs`. The next line has the number of `suppressed` ones,
 * because in an outage hundreds of runs fail for one reason, which the log of the outage names.
 */
export const throttled = (logger: Pick<Logger, 'warn'>, everyMs = EVERY_MS): Logger['warn'] => {
  let loggedAt = -Infinity
  let suppressed = 0
  return (message, fields) => {
    if (clock.monotonic() - loggedAt < everyMs) {
      suppressed++
      return
    }
    logger.warn(message, { ...fields, ...(suppressed > 0 && { suppressed }) })
    loggedAt = clock.monotonic()
    suppressed = 0
  }
}
