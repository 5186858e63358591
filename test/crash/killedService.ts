import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { hasEnded } from '../support/hasEnded.ts'
import { openApi } from '../support/http.ts'
import { until } from '../support/until.ts'
import type { Target } from './client.ts'
import type { Command } from './strace.ts'

export const NPM_START: Command = ['npm', 'start', '--silent']

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const STARTS_MS = 120_000

/** The environment of a service with embedded engines. */
export const environmentOf = (dataDir: string): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  HOME: process.env['HOME'] ?? '',
  PORT: '0',
  SVC_LOG_FORMAT: 'text',
  SVC_DATA_DIR: dataDir,
  UV_USE_IO_URING: '0', // strace does not see what a process does through io_uring
})

/** A service in a process of its own. */
export interface Running {
  readonly target: Target
  /** Its output so far. */
  readonly output: () => string
  /** Sends the signal to the process of the service itself, and resolves when everything that was started has ended. */
  end(signal: NodeJS.Signals): Promise<void>
}

const started = new Set<ChildProcess>()
process.on('exit', () => started.forEach(killGroup))

/** Starts a service. Rejects with its output if it ends before it is ready. */
export const startService = async (dataDir: string, [program, ...args]: Command): Promise<Running> => {
  const child = spawn(program, args, {
    cwd: ROOT,
    env: environmentOf(dataDir),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  started.add(child)
  let output = ''
  for (const pipe of [child.stdout, child.stderr])
    pipe.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      started.delete(child)
      resolve()
    })
  })
  const url = await until(
    () =>
      /is ready on \S+ \{"listens":"([^"]+)"/.exec(output)?.[1] ?? (hasEnded(child) ? 'ended' : undefined),
    { timeoutMs: STARTS_MS },
  )
  if (url === 'ended') throw new Error(`Expected the service to start, got ${output}`)
  const { apiKey, operatorToken } = openSecrets(readConfig(environmentOf(dataDir)))
  return {
    target: { api: openApi(url, apiKey), operatorToken },
    output: () => output,
    end: async (signal) => {
      process.kill(Number(readFileSync(join(dataDir, 'lock'), 'utf8')), signal)
      await ended
    },
  }
}

/** Ends npm, the service and its children, which share a process group. */
function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // they have ended
  }
}
