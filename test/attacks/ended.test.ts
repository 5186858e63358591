import { deploy, handle, type Run } from '../support/build.ts'
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

const attacks: Attack[] = [
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
