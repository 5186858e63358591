import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const svc = fileURLToPath(new URL('../../bin/svc.js', import.meta.url))

interface EndedCli {
  readonly code: number
  readonly out: string
  readonly err: string
}

interface Given {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

const optionsOf = ({ env, cwd }: Given) => ({
  env: { PATH: process.env['PATH'], ...env },
  ...(cwd !== undefined && { cwd }),
})

/** Runs the real `svc` without a terminal, and resolves when it has ended. */
export const cli = (args: readonly string[], given: Given = {}): Promise<EndedCli> =>
  new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [svc, ...args],
      { ...optionsOf(given), maxBuffer: 64 << 20 },
      (error, out, err) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, out, err }),
    )
    child.stdin?.end()
  })

/** The JSON that a command printed. Fails unless it ended as done. */
export const cliJson = async <T>(args: readonly string[], given: Given = {}): Promise<T> => {
  const { code, out, err } = await cli([...args, '--json'], given)
  if (code !== 0) throw new Error(`Expected svc ${args.join(' ')} to end with 0, got ${code}: ${err}${out}`)
  return JSON.parse(out) as T
}
