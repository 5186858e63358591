import { Writable } from 'node:stream'
import { Run } from '../sandbox/child/run.ts'
import { consoleOf } from '../sandbox/child/capturedOutput.ts'
import type { Source } from '../sandbox/child/output.ts'
import { activeRuns } from '../sdk/activeRun.ts'

type Method = (...args: unknown[]) => unknown

const runOfContext = (): Run | undefined => {
  const run = activeRuns.getStore()
  return run instanceof Run ? run : undefined
}

const toRun = (source: Source): Writable =>
  new Writable({
    decodeStrings: false,
    write: (chunk: string | Buffer, _encoding, done) => {
      const run = runOfContext()
      if (run && !run.ended) run.output.write(source, chunk.toString())
      done()
    },
  })

const streams = { stdout: toRun('stdout'), stderr: toRun('stderr') }
const captured = consoleOf(runOfContext, streams) as unknown as Record<string, Method>

const original = new Map<string, Method>()
let running = 0

/** While a run is in progress, `console` writes to the run of its caller. Other callers reach the console of the test. */
export const whileCaptured = async (work: () => Promise<void>): Promise<void> => {
  if (running++ === 0) capture()
  try {
    await work()
  } finally {
    if (--running === 0) release()
  }
}

const capture = (): void => {
  const real = console as unknown as Record<string, Method>
  for (const [name, method] of Object.entries(captured)) {
    const before = real[name]
    if (typeof method !== 'function' || typeof before !== 'function') continue
    original.set(name, before)
    real[name] = (...args) => (runOfContext() ? method(...args) : Reflect.apply(before, real, args))
  }
}

const release = (): void => {
  for (const [name, method] of original) (console as unknown as Record<string, Method>)[name] = method
  original.clear()
}
