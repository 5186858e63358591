import { spawnSync } from 'node:child_process'
import { closeSync, cpSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { tempDir } from '../support/tempDir.ts'
import { Disk } from './disk.ts'
import type { Step } from './operations.ts'
import { strace } from './strace.ts'
import { TraceReader } from './traceReader.ts'

/** A small program that changes files below its argument, and acknowledges (programs/acknowledge.ts) what is durable. */
export interface Recorded {
  /** The folder below which the program has changed files. */
  readonly root: string
  readonly steps: readonly Step[]
  /** The disk before the first step. */
  newDisk(): Disk
  /** Replays the program, and calls `at` at each acknowledgement. */
  replay(at: (acknowledged: string, disk: Disk) => void): void
}

/** Runs `programs/<name>.ts` with strace, on the files that `prepare` writes below the root. */
export const recordProgram = async (
  name: string,
  prepare: (root: string) => Promise<void> | void = () => {},
): Promise<Recorded> => {
  const dir = tempDir()
  const root = tempDir()
  await prepare(root)
  const before = join(dir, 'before')
  cpSync(root, before, { recursive: true })
  const newDisk = () => {
    const disk = new Disk([root])
    disk.load(root, before)
    return disk
  }
  const trace = join(dir, 'trace')
  const program = fileURLToPath(new URL(`./programs/${name}.ts`, import.meta.url))
  const [command, ...args] = strace(trace, [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    program,
    root,
  ])
  const output = openSync(join(dir, 'output'), 'w') // a pipe that is full would refuse an acknowledgement
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', output, 'pipe'] })
  closeSync(output)
  if (status !== 0) throw new Error(`Expected ${name} to end, got ${status}: ${stderr}`)
  const steps: readonly Step[] = await new TraceReader([root]).read(trace)
  return {
    root,
    steps,
    newDisk,
    replay(at) {
      const disk = newDisk()
      for (const step of steps) {
        disk.take(step)
        if (step.type === 'begin' && step.operation.kind === 'reply')
          for (const acknowledged of step.operation.request_ids) at(acknowledged, disk)
      }
    },
  }
}
