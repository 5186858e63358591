import { counted } from '../text/counted.ts'
import { clock } from '../clock.ts'
import { isAppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { type Check, failed, ok } from '../process/checks/check.ts'
import { checkClock, leastSkewMs } from '../process/checks/clock.ts'
import { ask } from './ask.ts'
import { command, type Invocation } from './command.ts'

/** The `Date` header has no smaller unit. */
const DATE_RESOLUTION_MS = 1000

/** Checks the service at `SVC_URL` from outside: whether it answers, and its clock. */
const reach = async (
  signal: AbortSignal,
): Promise<{ readonly answers: boolean; readonly checks: readonly Check[] }> => {
  const began = clock.now()
  try {
    const { url, date } = await ask('/status', signal)
    const skew = Number.isNaN(date)
      ? []
      : [leastSkewMs({ time: date, resolutionMs: DATE_RESOLUTION_MS }, { began, ended: clock.now() })]
    return {
      answers: true,
      checks: [ok('address', `${url} answers`), ...skew.map((skewMs) => checkClock('the service', skewMs))],
    }
  } catch (error) {
    if (!isAppError(error)) throw error
    const fix = 'start it with svc serve, or set SVC_URL to the address of the service'
    return { answers: false, checks: [failed('address', String(error.data['detail'] ?? error.message), fix)] }
  }
}

/** The checks that the service makes itself; incomplete if it cannot, then with the reason. */
const askService = async (
  operator: Invocation['operator'],
): Promise<{ readonly isComplete: boolean; readonly checks: readonly Check[] }> => {
  try {
    const checks = await operator().request<readonly Check[]>('GET', '/operator/checks')
    return { isComplete: true, checks }
  } catch (error) {
    if (!isAppError(error)) throw error
    const reason =
      error.code === 'unauthorized'
        ? failed('operator token', error.message, 'set SVC_OPERATOR_TOKEN, or run svc beside the service')
        : failed('service', error.message, 'wait until it is ready, or see its log for the cause')
    return { isComplete: false, checks: [reason] }
  }
}

const lineOf = ({ name, state, detail, fix }: Check, width: number): string => {
  const shown = `${state.padEnd('warning'.length)}  ${name.padEnd(width)}  ${onOneLine(detail)}\n`
  return fix === null ? shown : `${shown}${' '.repeat(width + 11)}fix: ${onOneLine(fix)}\n`
}

export const doctorCommand = command({
  name: 'doctor',
  summary: 'check the installation, and print how to fix each problem',
  description:
    'Checks the engines and their clocks, the secrets and their modes, the disk, the sandbox, the limit of open files and the ' +
    'version of Node. A running service makes these checks itself. Otherwise, they are made on this machine with the ' +
    'settings of the environment, and nothing is changed. Ends with 1 if a check has failed.',
  options: {
    local: {
      description: 'check this machine without asking the service, for example before the first start',
    },
  },
  examples: ['svc doctor', 'svc doctor --json', 'svc doctor --local && svc serve'],
  async run({ options, operator, signal }) {
    const outside = options.local ? { answers: false, checks: [] } : await reach(signal)
    const inside = outside.answers ? await askService(operator) : { isComplete: false, checks: [] }
    const { checkMachine } = await import('../process/checkMachine.ts')
    const machine = inside.isComplete ? [] : await checkMachine()
    const checks = [...outside.checks, ...inside.checks, ...machine]
    const width = Math.max(...checks.map(({ name }) => name.length))
    const count = (state: Check['state']) => checks.filter((check) => check.state === state).length
    const summary = `\n${counted(checks.length, 'check')}: ${count('failed')} failed, ${counted(count('warning'), 'warning')}\n`
    return {
      json: { ok: count('failed') === 0, service: outside.answers, checks },
      text: checks.map((check) => lineOf(check, width)).join('') + summary,
      failed: count('failed') > 0,
    }
  },
})
