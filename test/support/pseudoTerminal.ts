import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { svc } from './cli.ts'
import { until } from './until.ts'

/** Why this machine has no pseudo-terminals; null if it has. */
export const noPseudoTerminal = (): string | null => {
  const { stdout, error } = spawnSync('script', ['--version'], { encoding: 'utf8' })
  return !error && stdout.includes('util-linux') ? null : 'expected script of util-linux'
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

const running = new Set<ChildProcess>()
// Without script, svc loses its terminal and ends.
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')))

/**
 * Starts `svc` on a real pseudo-terminal of 200 columns, which shows the standard output and the standard error.
 * `redirect` is shell, such as `2>FILE`.
 */
export const startOnTerminal = (
  args: readonly string[],
  {
    env = {},
    redirect = '',
  }: { readonly env?: Readonly<Record<string, string>>; readonly redirect?: string } = {},
) => {
  const command = `stty cols 200; exec ${[process.execPath, svc, ...args].map(quoted).join(' ')} ${redirect}`
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env['PATH'], TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  running.add(child)
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const ended = new Promise<number | null>((resolve) =>
    child.on('close', (code) => {
      running.delete(child)
      resolve(code)
    }),
  )
  return {
    /** What the terminal has received. */
    text: () => text,
    type: (keys: string) => void child.stdin.write(keys),
    shows: async (part: string | RegExp) =>
      void (await until(
        () => (typeof part === 'string' ? text.includes(part) : part.test(text)) || undefined,
        {
          timeoutMs: 60_000,
        },
      )),
    /** Closes the terminal. */
    hangUp: () => void child.kill('SIGKILL'),
    /** The exit code, and everything that the terminal has received. */
    end: async () => ({ code: await ended, text }),
  }
}
