import { spawn } from 'node:child_process'
import { once } from 'node:events'

/**
 * Limits the size of files that a process writes, which then fails as on a full disk. The process must ignore SIGXFSZ
 * (test/fixtures/smallDisk.ts). Resolves with the exit code of prlimit, which fails if the process has ended.
 */
export const limitFiles = async (pid: number, bytes: number | 'unlimited'): Promise<number | null> => {
  const limiting = spawn('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`], { stdio: 'inherit' })
  const [code] = (await once(limiting, 'close')) as [number | null]
  return code
}
