import { deploy, handle, handled, publish, type Run } from '../support/build.ts'
import { newId } from '../../src/ids.ts'
import { readdirSync, readFileSync } from 'node:fs'
import { type Attack, attackSuite } from './attack.ts'
import { cpuSecondsOf } from './cpu.ts'
import type { Target } from './target.ts'
import { resultOf } from './tries.ts'

/** The processes below a process, by pid. */
const below = (parent: number): number[] => {
  const parents = readdirSync('/proc').flatMap((name): [number, number][] => {
    try {
      const [, pid, of] = /^(\d+) .*\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'latin1')) ?? []
      return [[Number(pid), Number(of)]]
    } catch {
      return []
    }
  })
  const of = (id: number): number[] => parents.flatMap(([pid, up]) => (up === id ? [pid, ...of(pid)] : []))
  return of(parent)
}

const WATCHED_MS = 5000

/** CPU seconds of the children in `WATCHED_MS`; those that end meanwhile used at most what they had. */
const cpuOfChildren = async (pid: number): Promise<number> => {
  const times = () => new Map(below(pid).map((child) => [child, cpuSecondsOf(child)]))
  const before = times()
  await new Promise((resolve) => setTimeout(resolve, WATCHED_MS))
  let used = 0
  for (const [child, seconds] of times()) used += seconds - (before.get(child) ?? 0)
  return used
}

const afterwards = async (target: Target, code: string): Promise<string> => {
  const fresh = await target.fresh()
  const { api } = fresh.attacker
  const project = `p-${newId()}`
  await deploy(api, project, { 'main.ts': code })
  const call = (): Promise<Run> => handle(api, 'svc:call', { fn: 'main/attack', project, args: [] })
  const first = await call()
  if (first.status !== 'succeeded') throw new Error(JSON.stringify(first.error))
  const used = await cpuOfChildren(fresh.server.process.pid ?? 0)
  if (used > 1.5) throw new Error(`children used ${used} s of CPU in ${WATCHED_MS} ms after the end`)
  const next = await handle(api, 'svc:call', { fn: 'main/next', project, args: [] })
  if (next.status !== 'succeeded') throw new Error(`the next run: ${JSON.stringify(next.error)}`)
  return `${used.toFixed(2)} s of CPU in ${WATCHED_MS} ms after the end, the next run succeeded: ${JSON.stringify(next.result)}`
}

const NEXT = `import { readFile } from 'node:fs/promises'
export const next = () => Math.round(process.memoryUsage.rss() / 1e6) + ' MB'
`
/** The ways to wait that a run could use again and again. `watches` counts what continues beside itself. */
const REARMED = `
  import net from 'node:net'
  const counts: Record<string, number> = {}
  const ways: Record<string, (again: () => void) => void> = {
    refresh: (again) => { const timer = setTimeout(() => { again(); timer.refresh() }, 5) },
    signal: (again) => { const next = () => { AbortSignal.timeout(5).onabort = () => { again(); next() } }; next() },
    socket: (again) => { const socket = new net.Socket(); socket.on('timeout', () => { again(); socket.setTimeout(5) }).setTimeout(5) },
    class: (again) => { const { constructor } = setTimeout(() => {}) as any; new constructor(again, 5, undefined, true, true).refresh() },
    immediate: (again) => { const { constructor } = setImmediate(() => {}) as any; const next = () => { again(); new constructor(next) }; next() },
    imitated: (again) => { setTimeout(() => {}).refresh.call({ _idleTimeout: 5, _repeat: 5, _onTimeout: again } as any) },
    waitAsync: (again) => { const next = () => { void (Atomics as any).waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5).value.then(() => { again(); next() }) }; next() },
  }
  export const attack = async () => {
    for (const [name, loop] of Object.entries(ways)) {
      counts[name] = 0
      try { loop(() => counts[name]++) } catch {}
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  export const watches = async () => {
    const before = { ...counts }
    await new Promise((resolve) => setTimeout(resolve, 1000))
    return Object.entries(counts).filter(([name, count]) => count > before[name]).map(([name]) => name)
  }
`

/** Ways to continue without timers; each one uses a processor all the time. */
const CONTINUING: Readonly<Record<string, string>> = {
  promises: `for (;;) { await readFile(file); work() }`,
  'message ports': `const { port1, port2 } = new MessageChannel(); port1.onmessage = () => { work(); void readFile(file).then(() => port2.postMessage(1)) }; port2.postMessage(1)`,
  callbacks: `const again = () => randomBytes(9, () => { work(); again() }); again()`,
  'rounds of a key': `pbkdf2('a', 'b', 2 ** 31 - 1, 64, 'sha512', () => {})`,
  compression: `const much = randomBytes(2 ** 20); const again = () => gzip(much, { chunkSize: 2 ** 21 }, again); again()`,
  signals: `process.on('SIGUSR2', () => { work(); process.kill(process.pid, 'SIGUSR2') }); process.kill(process.pid, 'SIGUSR2')`,
}

const continuing = (code: string) => `
  import { currentRun } from 'svc'
  import { readFile } from 'node:fs/promises'
  import { pbkdf2, randomBytes } from 'node:crypto'
  import { gzip } from 'node:zlib'
  const file = new URL(import.meta.url)
  const mark = Math.random()
  const work = () => { const until = performance.now() + 5; while (performance.now() < until); }
  export const holds = async () => {
    if (currentRun().attempt === 1) await new Promise((resolve) => setTimeout(resolve, 60_000))
    return 'done'
  }
  const continues = async () => { ${code} }
  export const attack = () => void continues()
`

/** The attack continues beside a run in progress, whose second attempt needs another process. */
const beside = async (target: Target, code: string): Promise<void> => {
  const { api } = target.attacker
  const project = `p-${newId()}`
  await deploy(api, project, { 'main.ts': continuing(code) })
  const call = (name: string) => ({ fn: `main/${name}`, project, args: [] })
  const { event_id } = await publish(api, 'svc:call', call('holds'))
  resultOf(await handle(api, 'svc:call', call('attack')))
  const [first, second] = (await handled(api, event_id, 2)).toSorted((a, b) => a.attempt - b.attempt)
  if (!first?.error?.message.startsWith('lost with a run that had ended'))
    throw new Error(`the run beside it: ${JSON.stringify(first?.error)}`)
  if (second?.result !== 'done') throw new Error(`its second attempt: ${JSON.stringify(second)}`)
}

const attacks: Attack[] = [
  {
    id: 'A/13-after-the-end/continuing',
    attempt:
      'use a processor by promises, message ports, callbacks, signals, rounds of a key and compression, while another run keeps the process awake',
    severity: 'high',
    async run(target) {
      await Promise.all(Object.values(CONTINUING).map((code) => beside(target, code)))
      return 'the processes were ended, and the runs beside succeeded in others'
    },
  },
  {
    id: 'A/13-after-the-end/rearmed',
    attempt:
      'continue by timers, signals and timeouts that are set again, while another run keeps the process awake',
    severity: 'high',
    async run(target) {
      const { api } = target.attacker
      const project = `p-${newId()}`
      await deploy(api, project, { 'main.ts': REARMED })
      const call = (name: string) => handle(api, 'svc:call', { fn: `main/${name}`, project, args: [] })
      resultOf(await call('attack'))
      const continued = resultOf(await call('watches')) as string[]
      if (continued.length > 0) throw new Error(`went through: ${continued.join(', ')}`)
      return 'nothing fired after the end, although another run used the process'
    },
  },
  {
    id: 'A/13-after-the-end/spin',
    attempt: 'spin without end after the run ended',
    severity: 'high',
    run: (target) =>
      afterwards(
        target,
        `${NEXT} export const attack = () => { void readFile(new URL(import.meta.url)).then(() => readFile(new URL(import.meta.url))).then(() => { for (;;); }) }`,
      ),
  },
  {
    id: 'A/13-after-the-end/spin-timer',
    attempt: 'spin in a timer after the run ended',
    severity: 'high',
    run: (target) =>
      afterwards(target, `${NEXT} export const attack = () => { setTimeout(() => { for (;;); }, 20) }`),
  },
  {
    id: 'A/13-after-the-end/tick',
    attempt: 'use 90 % of a core in timers after the run ended',
    severity: 'high',
    run: (target) =>
      afterwards(
        target,
        `${NEXT} export const attack = () => { setInterval(() => { const until = Date.now() + 18; while (Date.now() < until); }, 20) }`,
      ),
  },
  {
    id: 'A/13-after-the-end/module-timer',
    attempt: 'use 90 % of a core in a timer of a module',
    severity: 'high',
    run: (target) =>
      afterwards(
        target,
        `${NEXT} setInterval(() => { const until = Date.now() + 18; while (Date.now() < until); }, 20); export const attack = () => 1`,
      ),
  },
  {
    id: 'A/13-after-the-end/promises',
    attempt: 'read files in an endless chain of promises after the run ended',
    severity: 'high',
    run: (target) =>
      afterwards(
        target,
        `${NEXT} export const attack = () => { void (async () => { for (;;) await readFile(new URL(import.meta.url)) })() }`,
      ),
  },
  {
    id: 'A/13-after-the-end/memory',
    attempt: 'take memory after the run ended',
    severity: 'medium',
    run: (target) =>
      afterwards(
        target,
        `${NEXT} const kept: Buffer[] = []; export const attack = () => { setInterval(() => kept.push(Buffer.alloc(16 << 20, 1)), 20) }`,
      ),
  },
]

attackSuite('after the end of a run', attacks)
