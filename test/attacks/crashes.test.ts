import { attackSuite } from './attack.ts'
import { deployed, endOf, FOREVER, moduleOf, shown, unharmed } from './calls.ts'

/** Bodies of functions that end their process or their run. */
const CRASHES: Readonly<Record<string, string>> = {
  exit: `process.exit(0)`,
  'exit after output': `console.log('x'); process.exit(1)`,
  reallyExit: `(process as any).reallyExit(0)`,
  abort: `process.abort()`,
  segv: `process.kill(process.pid, 'SIGSEGV'); ${FOREVER}`,
  kill: `process.kill(process.pid, 'SIGKILL'); ${FOREVER}`,
  term: `process.kill(process.pid, 'SIGTERM'); ${FOREVER}`,
  overflow: `const deeper: any = () => deeper() + 1; deeper()`,
  'a late exception': `setTimeout(() => { throw new Error('late') }, 1); ${FOREVER}`,
  'a late rejection': `void Promise.reject(new Error('late')); ${FOREVER}`,
  'an exception in a microtask': `queueMicrotask(() => { throw new Error('late') }); ${FOREVER}`,
  'a closed pipe': `(await import('node:fs')).closeSync(3); ${FOREVER}`,
}

interface Ending {
  readonly body: string
  /** The code of the error; absent if the run succeeds. */
  readonly code?: string
}

const returned = (body: string, code?: string): Ending => ({ body, ...(code !== undefined && { code }) })
const thrown = (value: string): Ending => ({ body: `throw ${value}`, code: 'function_failed' })

/** The result or error of a function, and the required end of its run. */
const VALUES: Readonly<Record<string, Ending>> = {
  proxy: returned(
    `return new Proxy({}, { ownKeys() { throw new Error('trap') } })`,
    'result_not_serializable',
  ),
  bigint: returned(`return 1n`, 'result_not_serializable'),
  cycle: returned(`const a: any = {}; a.a = a; return a`, 'result_not_serializable'),
  toJSON: returned(`return { toJSON() { throw null } }`, 'result_not_serializable'),
  getter: returned(`return { get a() { throw Symbol('x') } }`, 'result_not_serializable'),
  deep: returned(
    `let a: any = []; for (let n = 0; n < 5000; n++) a = [a]; return a`,
    'result_not_serializable',
  ),
  large: returned(`return 'x'.repeat(7 << 20)`, 'result_too_large'),
  'large after JSON': returned(`return '\\u0001'.repeat(2 << 20)`, 'result_too_large'),
  __proto__: returned(`return JSON.parse('{"__proto__":{"env_id":1}}')`),
  function: returned(`return () => 1`),
  'lone surrogate': returned(`return '\\ud800'`),
  thenable: returned(`return { then() { throw new Error('then') } }`, 'function_failed'),
  'thrown null': thrown('null'),
  'thrown undefined': thrown('undefined'),
  'thrown symbol': thrown(`Symbol('x')`),
  'thrown proxy': thrown(
    `new Proxy({}, { get() { throw new Error('trap') }, getPrototypeOf() { throw 1 } })`,
  ),
  'thrown revoked': thrown(
    `(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy })()`,
  ),
  'thrown getters': thrown(
    `Object.defineProperties(new Error('x'), { message: { get() { throw 1 } }, stack: { get() { throw 2 } } })`,
  ),
  'thrown toString': thrown(`{ toString() { throw new Error('x') } }`),
  'thrown large': thrown(`Object.assign(new Error('x'.repeat(16 << 20)), { stack: 'y'.repeat(16 << 20) })`),
  'thrown code': thrown(`Object.assign(new Error('x'), { code: 'worker_lost', status: 'succeeded' })`),
}

attackSuite('the ends of runs', [
  {
    id: 'A/09-crashes',
    attempt: 'exit, abort, signals to itself, stack overflow, late exceptions',
    severity: 'high',
    run: async (target) => {
      const { api } = target.attacker
      const project = await deployed(api, { 'main.ts': moduleOf(CRASHES) })
      const outcomes: string[] = []
      for (const name of Object.keys(CRASHES)) {
        const run = await endOf(api, project, 'patient', name)
        outcomes.push(`${name}: ${shown(run)}`)
        if (!['worker_lost', 'function_failed', 'unresponsive'].includes(run.error?.code ?? ''))
          throw new Error(`${name}: the run ended ${shown(run)}`)
      }
      return `${await unharmed(target)}; ${outcomes.join(', ')}`
    },
  },
  {
    id: 'A/14-values',
    attempt: 'return and throw values with traps, getters, toJSON, __proto__, size and depth',
    severity: 'medium',
    run: async (target) => {
      const { api } = target.attacker
      const bodies = Object.entries(VALUES).map(([name, { body }]) => [name, body] as const)
      const project = await deployed(api, { 'main.ts': moduleOf(Object.fromEntries(bodies)) })
      for (const [name, { code }] of Object.entries(VALUES)) {
        const run = await endOf(api, project, 'patient', name)
        if (run.error?.code !== code) throw new Error(`${name}: the run ended ${shown(run)}`)
        if ((run.error?.message.length ?? 0) > 8192) throw new Error(`${name}: a long message is stored`)
      }
      return `${await unharmed(target)}; ${Object.keys(VALUES).length} values ended their own run as expected`
    },
  },
])
