import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { startCli } from './cli.ts'
import { hasEnded } from './hasEnded.ts'
import { EMBEDDED } from './installation.ts'
import { tempDir } from './tempDir.ts'
import { until } from './until.ts'

/** A line of `svc dev --json`. */
export type DevLine = Readonly<Record<string, unknown>> & { readonly type: string }

/** A new folder with these files. */
export const folderOf = (files: Readonly<Record<string, string>>): string => {
  const folder = tempDir()
  for (const [path, content] of Object.entries(files)) save(folder, path, content)
  return folder
}

/** Saves a file in one step: `svc dev` could deploy what is there between the creation of a file and its content. */
export const save = (folder: string, path: string, content: string): void => {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  const written = join(tempDir(), 'saved')
  writeFileSync(written, content)
  renameSync(written, file)
}

/** Starts `svc dev` in a folder, at any free port. `within`: a program that starts it, such as bubblewrap. */
export const startDev = (
  folder: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  within: readonly string[] = [],
) => {
  const running = startCli(['dev', folder, '--json', '--port', '0', ...args], {
    env: { ...EMBEDDED, ...env },
    within,
  })
  const lines = (): DevLine[] =>
    running
      .out()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as DevLine)
  let read = 0
  return {
    ...running,
    lines,
    /** Waits for the next line of a type that was not read yet, and skips the lines before it. */
    next: async (type: string, isIt: (line: DevLine) => boolean = () => true): Promise<DevLine> => {
      const found = await until(
        () => {
          const all = lines()
          const at = all.findIndex((line, index) => index >= read && line.type === type && isIt(line))
          if (at < 0) {
            if (hasEnded(running.process)) throw new Error(`svc dev has ended: ${running.err()}`)
            throw new Error(`Expected a line ${type} after ${JSON.stringify(all.slice(read))}`)
          }
          read = at + 1
          return all[at]
        },
        { timeoutMs: 30_000 },
      )
      return found
    },
    stop: async (signal: NodeJS.Signals = 'SIGTERM') => {
      running.process.kill(signal)
      return running.ended
    },
  }
}

export type RunningDev = ReturnType<typeof startDev>
