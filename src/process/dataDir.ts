import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../errors.ts'
import { lockFile } from './engines.ts'

/**
 * Locks the data directory for this process, because two services would corrupt its log. The operating system releases
 * the lock when the process ends. The file `lock` only contains the process id. Returns a function that unlocks.
 */
export const lockDataDir = (dir: string): (() => void) => {
  const owner = join(dir, 'lock')
  let unlock: (() => void) | null
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    unlock = lockFile(join(dir, 'lock.db'))
    if (unlock) writeFileSync(owner, String(process.pid), { mode: 0o600 })
  } catch (error) {
    throw new AppError('unavailable', `SVC_DATA_DIR: cannot write in ${dir} (${reasonOf(error)})`, {
      cause: error,
    })
  }
  if (!unlock) {
    throw new AppError(
      'unavailable',
      `${dir} is in use by process ${readOwner(owner)}: stop it, or set SVC_DATA_DIR to another directory`,
    )
  }
  return () => {
    rmSync(owner, { force: true })
    unlock()
  }
}

const readOwner = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return 'unknown' // it is just starting or stopping
  }
}

const reasonOf = (error: unknown): string =>
  error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error)
