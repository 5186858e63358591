import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { hasEnded } from './hasEnded.ts'
import { until } from './until.ts'

/** A program that serves, with the processes that it has started. */
export interface Launched {
  /** The part of its output that says that it is ready. */
  readonly ready: string
  /** Kills it and its processes. */
  stop(): Promise<void>
}

const running = new Set<ChildProcess>()
process.on('exit', () => running.forEach(kill))

/** All processes of the program: it is the leader of their group. */
const kill = ({ pid }: ChildProcess): void => {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // they have ended
  }
}

/** Starts a program and resolves when its output matches. Rejects with the output if it ends before. */
export const launch = async (
  [file, ...args]: readonly [string, ...string[]],
  options: {
    readonly cwd: string
    readonly env: Readonly<Record<string, string | undefined>>
    readonly ready: RegExp
  },
): Promise<Launched> => {
  const { cwd, env, ready } = options
  const child = spawn(file, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  const ended = once(child, 'close').finally(() => running.delete(child))
  let output = ''
  for (const pipe of [child.stdout, child.stderr])
    pipe.setEncoding('utf8').on('data', (text: string) => (output += text))
  const found = await until(
    () => (hasEnded(child) ? { by: child.exitCode ?? child.signalCode } : ready.exec(output)?.[0]),
    { timeoutMs: 60_000 },
  ).catch((error: unknown) => {
    kill(child)
    throw new Error(`Expected ${file} to become ready, got: ${output}`, { cause: error })
  })
  if (typeof found !== 'string')
    throw new Error(`Expected ${file} to become ready, got ${found.by}: ${output}`)
  return {
    ready: found,
    stop: async () => {
      kill(child)
      await ended
    },
  }
}
