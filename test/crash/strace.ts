import { spawnSync } from 'node:child_process'
import { codeCache } from '../support/codeCache.ts'
import { fileURLToPath } from 'node:url'
import { TRACED } from './traceReader.ts'

/** A program and its arguments. */
export type Command = readonly [program: string, ...args: string[]]

/** Longer than any write: a text that strace cuts is refused. */
const LONGEST_TEXT = 1 << 28

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** The command line of a service without npm, whose process would be in the trace. */
export const NODE_START: Command = [process.execPath, ...codeCache, main]

/** The command line that runs a program and writes its system calls to a file. */
export const strace = (trace: string, command: Command): Command => [
  'strace',
  '-f',
  '--seccomp-bpf',
  '-qq',
  '-xx',
  '-s',
  String(LONGEST_TEXT),
  '-o',
  trace,
  '-e',
  `trace=${TRACED.map((name) => `?${name}`).join(',')}`,
  '-e',
  'signal=none',
  ...command,
]

/** Null if strace can trace a process here, else what is missing. */
export const straceProblem = (): string | null => {
  const { error, status, stderr } = spawnSync(
    'strace',
    ['-f', '--seccomp-bpf', '-qq', '-o', '/dev/null', 'true'],
    {
      encoding: 'utf8',
    },
  )
  if (error) return 'strace is not installed (Debian: apt-get install strace), and only Linux has it'
  return status === 0 ? null : `strace cannot trace a process here: ${stderr.trim()}`
}
