import { ticksOf } from '../../domain/cron.ts'
import type { FunctionSpec } from '../../events/project.ts'

/** More than any plan allows in a build. */
const MOST = 10_000
const MOST_SCHEDULES = 1000
/** Characters of one function as JSON, as at an upload. */
const MAX_SPEC = 8 << 10
const MAX_DELAY_MS = 3_600_000
const MAX_TIMEOUT_MS = 900_000
const NAME = /^[^\p{Cc}]{1,512}$/u
const METHOD = /^(GET|PUT|PATCH|DELETE|POST)$/
const SERVICE = /^[A-Za-z0-9._-]{1,128}$/
const PATH = /^\/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*$/

/** Throws an `Error` for functions that no upload would have accepted: every node acts on them. */
export const checkImportedFunctions = (functions: readonly FunctionSpec[]): void => {
  if (functions.length > MOST) throw new Error(`functions: expected at most ${MOST}, got ${functions.length}`)
  const schedules = functions.filter((spec) => spec.schedule).length
  if (schedules > MOST_SCHEDULES)
    throw new Error(`functions: expected at most ${MOST_SCHEDULES} schedules, got ${schedules}`)
  for (const spec of functions) {
    const { ns, var: name, retry, schedule, webhook, timeout, context = [] } = spec
    const expect = (isValid: boolean, field: string) => {
      if (!isValid) throw new Error(`functions: ${field} of a function is not valid`)
    }
    expect(JSON.stringify(spec).length <= MAX_SPEC, 'size')
    expect(NAME.test(ns) && NAME.test(name), 'name')
    expect(context.length <= 100, 'context')
    if (timeout !== undefined) expect(timeout >= 1 && timeout <= MAX_TIMEOUT_MS, 'timeout')
    if (retry)
      expect(
        retry.attempts >= 0 && retry.attempts <= 10 && retry.delay >= 0 && retry.delay <= MAX_DELAY_MS,
        'retry',
      )
    if (schedule) ticksOf(schedule.cron, schedule.timezone) // throws
    if (webhook)
      expect(
        METHOD.test(webhook.method) && SERVICE.test(webhook.service) && PATH.test(webhook.path),
        'webhook',
      )
  }
}
