import { onOneLine } from '../logger.ts'
import { masked } from './redaction.ts'
import { MASK } from '../events/mask.ts'

const MAX_SHOWN = 120

/** The value of a setting for an error: on one line, and without user, password and query if it is like a URL. */
export const shownValue = (text: string): string => {
  const shown = onOneLine(
    masked(
      text
        .replace(/^([a-z][a-z0-9+.-]*:\/\/)[^]*@/i, `$1${MASK}@`) // up to the last @: a password may contain others
        .replace(/^(?![a-z][a-z0-9+.-]*:\/\/)[^]*:[^]*@/i, `${MASK}@`) // without a scheme
        .replace(/[?#][^]*$/, `?${MASK}`),
    ),
  )
  return shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown
}
