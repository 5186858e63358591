import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../errors.ts'
import { type Failure, lacksRoom, LATE } from './untilAnswered.ts'

/** The end of a program that ran to its end. */
export interface Answer {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** The path of a program in the usual folders of the system, regardless of `PATH`. */
export const executable = (name: string): string | null => {
  for (const folder of ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin']) {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return join(folder, name)
    } catch {}
  }
  return null
}

export interface Limits {
  readonly ms: number
  readonly signal?: AbortSignal | undefined
}

/** Runs a program of the system. Resolves with its answer, or with the reason why it gave none. */
export const askProgram = (
  program: string,
  args: readonly string[],
  { ms, signal }: Limits,
): Promise<Answer | Failure> =>
  new Promise((resolve) => {
    try {
      const options = { timeout: ms, killSignal: 'SIGKILL', ...(signal && { signal }) } as const
      execFile(program, args, options, (error, stdout, stderr) => {
        if (error === null) resolve({ code: 0, stdout, stderr })
        else if (error.killed || signal?.aborted) resolve(LATE)
        else if (error.signal) resolve(`${program} was ended by ${error.signal}`)
        else if (typeof error.code !== 'number') resolve(error.message)
        else resolve(lacksRoom(stderr) ? stderr.trim() : { code: error.code, stdout, stderr })
      })
    } catch (error) {
      resolve(messageOf(error))
    }
  })
