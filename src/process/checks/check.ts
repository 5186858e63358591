import { isAppError, messageOf } from '../../errors.ts'
import { withDeadline } from '../../loops/deadline.ts'

/** What an operator should know about one part of the installation (`svc doctor`). */
export interface Check {
  /** The part, such as `disk`. */
  readonly name: string
  readonly state: 'ok' | 'warning' | 'failed'
  /** What was found, without secrets. */
  readonly detail: string
  /** How to fix the problem; null when there is none. */
  readonly fix: string | null
}

export const ok = (name: string, detail: string): Check => ({ name, state: 'ok', detail, fix: null })
export const warning = (name: string, detail: string, fix: string): Check => ({
  name,
  state: 'warning',
  detail,
  fix,
})
export const failed = (name: string, detail: string, fix: string): Check => ({
  name,
  state: 'failed',
  detail,
  fix,
})

/** A check takes at most this long, milliseconds: longer than the deadlines of the adapters, whose errors say more. */
const CHECK_MS = 15_000

/** Resolves with the result of a check, also if the check itself fails or does not end. */
export const checked = async (
  name: string,
  fix: string,
  check: () => Promise<readonly Check[]>,
): Promise<readonly Check[]> => {
  try {
    return await withDeadline(CHECK_MS, check(), () => new Error(`no answer within ${CHECK_MS / 1000} s`))
  } catch (error) {
    return [failed(name, isAppError(error) ? error.message : messageOf(error), fix)]
  }
}
