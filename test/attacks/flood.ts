import { cpuSecondsOf } from './cpu.ts'
import type { Target } from './target.ts'

/** Code that forges frames: `frame(value)` are the bytes, `put(bytes)` writes them at once. */
export const FORGE = `
  import { writeSync } from 'node:fs'
  import { context, currentRun, emit, files, run, send } from 'svc'
  const frame = (value: unknown) => {
    const body = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
    const head = Buffer.alloc(4)
    head.writeUInt32BE(body.length)
    return Buffer.concat([head, body])
  }
  const put = (bytes: Buffer) => {
    for (let at = 0; at < bytes.length; ) {
      try { at += writeSync(3, bytes, at) } catch (error: any) { if (error.code !== 'EAGAIN') throw error }
    }
  }
`

const FLOOD_MS = 4000

/** A module that repeats a piece of code without end, with a turn of the event loop after each. */
export const repeating = (prepared: string, each: string): string => `${FORGE}
  export const attack = async () => {
    ${prepared}
    const until = Date.now() + ${FLOOD_MS}
    let sent = 0
    while (Date.now() < until) {
      try { ${each}; sent++ } catch (error: any) { if (error.code !== 'EAGAIN') throw error }
      await new Promise((resolve) => setImmediate(resolve))
    }
    return sent
  }`

/** Writes the same bytes to a descriptor, as many as fit into a pipe at once. */
export const writing = (bytes: string, fd = 3): string =>
  repeating(
    `const bytes = ${bytes}
    const many = Buffer.concat(Array.from({ length: Math.max(1, Math.floor(65536 / bytes.length)) }, () => bytes))`,
    `writeSync(${fd}, many)`,
  )

/** A large frame of a guessed run. */
export const LARGE = `frame({ type: 'log', id: 1, source: 'stdout', text: 'x'.repeat(4 << 20) })`

/** Floods the service from one function. Resolves with the CPU time that the service spent meanwhile. */
export const flood = async (target: Target, code: string): Promise<string> => {
  const { pid } = target.server.process
  const before = cpuSecondsOf(pid)
  const { status, error } = await target.run(code)
  const used = cpuSecondsOf(pid) - before
  if (used > FLOOD_MS / 2000) throw new Error(`the service used ${used} s of CPU in ${FLOOD_MS} ms`)
  return `the run ended ${status} ${error?.code ?? ''}; the service used ${used.toFixed(1)} s of CPU, start of the process included`
}
