import { DEFAULT_OPTIONS } from '../../src/sandbox/limits.ts'
import { attackSuite } from './attack.ts'
import { deployed, endOf, shown } from './calls.ts'
import { descendantsOf, mostResidentMibOf } from './processes.ts'

/** Bodies that take memory until something refuses it. `kept` holds what they got. */
const HOARDS: Readonly<Record<string, string>> = {
  heap: `for (;;) kept.push(Array.from({ length: 1000 }, (_, n) => ({ n })))`,
  buffer: `for (;;) kept.push(Buffer.alloc(16 << 20, 1))`,
  unsafe: `for (;;) kept.push(Buffer.allocUnsafeSlow(16 << 20).fill(1))`,
  string: `for (let n = 0; ; n++) kept.push(String(n).padEnd(8 << 20, 'é'))`,
  map: `const map = new Map(); for (let n = 0; ; n++) map.set(n, { n })`,
  wasm: `for (;;) { const memory = new WebAssembly.Memory({ initial: 512 }); new Uint8Array(memory.buffer).fill(1); kept.push(memory) }`,
  resizable: `for (;;) { const buffer = new (ArrayBuffer as any)(1, { maxByteLength: 64 << 20 }); buffer.resize(64 << 20); new Uint8Array(buffer).fill(1); kept.push(buffer) }`,
  shared: `for (;;) { const buffer = new SharedArrayBuffer(32 << 20); new Uint8Array(buffer).fill(1); kept.push(buffer) }`,
}

const CODE = `const kept: unknown[] = []
  const bodies: any = { ${Object.entries(HOARDS)
    .map(([name, body]) => `${name}: () => { ${body} }`)
    .join(',\n')} }
  export const attack = (name: string) => bodies[name]()`

/** Calls `work`, and samples the most memory that any child had meanwhile. */
const mostOf = async (service: number, work: () => Promise<void>): Promise<number> => {
  let most = 0
  const sample = setInterval(() => {
    for (const pid of descendantsOf(service)) most = Math.max(most, mostResidentMibOf(pid))
  }, 50)
  try {
    await work()
  } finally {
    clearInterval(sample)
  }
  return most
}

attackSuite('memory of children', [
  {
    id: 'A/11-memory',
    attempt: 'take memory as heap, buffers, strings, WebAssembly, resizable and shared buffers',
    severity: 'high',
    run: async ({ attacker: { api }, victim, server }) => {
      const project = await deployed(api, { 'main.ts': CODE })
      const outcomes: string[] = []
      const most = await mostOf(server.process.pid ?? 0, async () => {
        for (const name of Object.keys(HOARDS)) {
          const run = await endOf(api, project, 'attack', name)
          outcomes.push(`${name}: ${shown(run)}`)
          if (run.status !== 'failed') throw new Error(`${name}: the run ended ${shown(run)}`)
        }
      })
      if (most > DEFAULT_OPTIONS.dataMb) throw new Error(`a child had ${most} MiB`)
      const own = await deployed(victim.api, { 'main.js': `export const works = () => 1` })
      const { status } = await endOf(victim.api, own, 'works')
      if (status !== 'succeeded') throw new Error(`the run of another tenant ended ${status}`)
      return `at most ${most} MiB of a child; ${outcomes.join(', ')}`
    },
  },
])
