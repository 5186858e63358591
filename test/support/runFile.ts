import { type ChildProcess, spawn } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'
import { clock } from '../../src/clock.ts'
import { codeDir } from '../../src/process/codeCache.js'

export interface FileResult {
  readonly total: number
  readonly passed: number
  readonly skipped: number
  readonly ms: number
  /** The output of the file, or its last part. */
  readonly output: string
  /** Why the file fails, in addition to its failed tests. */
  readonly problems: readonly string[]
}

export interface Limits {
  /** The longest time for the whole file. */
  readonly timeoutMs: number
  /** The time until nothing keeps its process after its summary, and until its children end after its process. */
  readonly lingerMs: number
}

/** Preloaded, so that every fact that a test appends is checked. */
const CHECK_FACTS = new URL('./checkFacts.ts', import.meta.url).href
/** Preloaded, so that the removal of temporary folders, which may take long on a busy disk, is not taken for an open handle. */
const ANNOUNCE_EXIT = new URL('./announceExit.ts', import.meta.url).href

const MAX_OUTPUT = 4 << 20
const RECENT_OUTPUT = 16 << 10
const SUMMARY = /^ {2}Total: +(\d+)\n {2}Passed: +(\d+)\n {2}Skipped: +(\d+)\n {2}Duration: .*$/gm

const running = new Set<ChildProcess>()

/** Runs one test file in its own process group, so that every process that it started ends with it. */
export const runFile = async (
  file: string,
  { timeoutMs, lingerMs }: Limits,
  env: Readonly<Record<string, string>> = {},
): Promise<FileResult> => {
  const started = clock.monotonic()
  const child = spawn(process.execPath, ['--import', CHECK_FACTS, '--import', ANNOUNCE_EXIT, file], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    detached: true,
    env: {
      ...process.env,
      ...(codeDir !== null && { NODE_COMPILE_CACHE: `${codeDir}/compiled` }),
      SVC_TEST_RUNNER_PID: String(process.pid),
      ...env,
    },
  })
  running.add(child)
  let output = ''
  let lingering: NodeJS.Timeout | undefined
  let overall: NodeJS.Timeout | undefined
  let isEnding = false

  const ending = await new Promise<string | undefined>((resolve) => {
    overall = setTimeout(resolve, timeoutMs, `expected to end within ${timeoutMs} ms`)
    const collect = (chunk: string) => {
      output = (output + chunk).slice(-MAX_OUTPUT)
      if (lingering || isEnding || !summaryOf(output.slice(-RECENT_OUTPUT))) return
      lingering = setTimeout(resolve, lingerMs, 'left a handle open: its tests ended, its process did not')
    }
    child.stdout?.setEncoding('utf8').on('data', collect)
    child.stderr?.setEncoding('utf8').on('data', collect)
    child.stdio[3]?.on('close', () => {
      isEnding = true
      clearTimeout(lingering)
    })
    child.on('error', (error) => resolve(`did not start: ${error.message}`))
    child.on('exit', () => {
      clearTimeout(lingering)
      lingering = setTimeout(resolve, lingerMs, 'left a child process running')
    })
    child.on('close', () => resolve(undefined))
  })
  clearTimeout(overall)
  clearTimeout(lingering)
  kill(child)
  running.delete(child)

  const summary = summaryOf(output) ?? { total: 0, passed: 0, skipped: 0 }
  const problems = ending === undefined ? [] : [ending]
  if (summary.total + summary.skipped === 0)
    problems.push('expected a summary of at least one test, got none')
  else if (ending === undefined && summary.passed === summary.total && child.exitCode !== 0) {
    problems.push(`exited with ${child.signalCode ?? `code ${child.exitCode}`} after its tests passed`)
  }
  return { ...summary, ms: clock.monotonic() - started, output, problems }
}

/** Ends every file that is running. */
export const stopAll = (): void => running.forEach(kill)

const summaryOf = (output: string) => {
  const match = [...stripVTControlCharacters(output).matchAll(SUMMARY)].at(-1)
  return match && { total: Number(match[1]), passed: Number(match[2]), skipped: Number(match[3]) }
}

/** Kills the whole group, which may have ended already. */
const kill = ({ pid }: ChildProcess): void => {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {}
}
