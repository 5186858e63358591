import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { until } from './until.ts'

/** The program. */
export const svc = fileURLToPath(new URL('../../bin/svc.js', import.meta.url))

interface EndedCli {
  readonly code: number
  readonly out: string
  readonly err: string
}

interface Given {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Options of Node. */
  readonly nodeOptions?: readonly string[]
  /** The standard input; default: empty. */
  readonly input?: string | Buffer
  /** A program with its arguments that starts the command, such as bubblewrap. */
  readonly within?: readonly string[]
}

const optionsOf = ({ env, cwd }: Given) => ({
  env: { PATH: process.env['PATH'], ...env },
  ...(cwd !== undefined && { cwd }),
})

const commandOf = (
  args: readonly string[],
  { within: [first, ...others] = [], nodeOptions = [] }: Given,
): readonly [string, readonly string[]] => {
  const started = [...nodeOptions, svc, ...args]
  return first === undefined
    ? [process.execPath, started]
    : [first, [...others, process.execPath, ...started]]
}

/** Runs the real `svc` without a terminal, and resolves when it has ended. */
export const cli = (args: readonly string[], given: Given = {}): Promise<EndedCli> =>
  new Promise((resolve) => {
    const child = execFile(
      ...commandOf(args, given),
      { ...optionsOf(given), maxBuffer: 64 << 20 },
      (error, out, err) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, out, err }),
    )
    child.stdin?.end(given.input)
  })

/** The JSON that a command printed. Fails unless it ended as done. */
export const cliJson = async <T>(args: readonly string[], given: Given = {}): Promise<T> => {
  const { code, out, err } = await cli([...args, '--json'], given)
  if (code !== 0) throw new Error(`Expected svc ${args.join(' ')} to end with 0, got ${code}: ${err}${out}`)
  return JSON.parse(out) as T
}

interface RunningCli {
  readonly process: ChildProcess
  readonly out: () => string
  readonly err: () => string
  /** Resolves with the exit code, or with the signal that ended the process. */
  readonly ended: Promise<number | NodeJS.Signals | null>
  /** Waits until the output contains the text. */
  shows(text: string): Promise<void>
}

const running = new Set<ChildProcess>()
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')))

/** Starts the real `svc` for a command that lasts. */
export const startCli = (args: readonly string[], given: Given = {}): RunningCli => {
  const child = spawn(...commandOf(args, given), {
    ...optionsOf(given),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  const texts = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (texts.out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (texts.err += text))
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on('close', (code, signal) => {
      running.delete(child)
      resolve(code ?? signal)
    })
  })
  return {
    process: child,
    out: () => texts.out,
    err: () => texts.err,
    ended,
    shows: async (text) =>
      void (await until(() => (texts.out + texts.err).includes(text), { timeoutMs: 30_000 })),
  }
}
