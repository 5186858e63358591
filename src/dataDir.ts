import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from './errors.ts'

/**
 * Takes the data directory for this process: two services on one directory would both believe they own
 * its log. The lock names its owner, so that one left behind by a crash gives way.
 */
export const lockDataDir = (dir: string): (() => void) => {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new AppError('unavailable', `SVC_DATA_DIR: cannot make ${dir} (${(error as NodeJS.ErrnoException).code})`, { cause: error })
  }
  const file = join(dir, 'lock')
  const take = (): boolean => {
    try {
      const fd = openSync(file, 'wx', 0o600)
      writeSync(fd, String(process.pid))
      closeSync(fd)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
      throw new AppError('unavailable', `SVC_DATA_DIR: cannot write in ${dir} (${(error as NodeJS.ErrnoException).code})`, { cause: error })
    }
  }
  if (!take()) {
    const owner = Number(readFileSync(file, 'utf8'))
    if (owner !== process.pid && isAlive(owner)) {
      throw new AppError('unavailable', `${dir} is in use by process ${owner}: stop it, or set SVC_DATA_DIR to another directory`)
    }
    rmSync(file, { force: true })
    if (!take()) throw new AppError('unavailable', `${dir} was taken by another process just now`)
  }
  return () => rmSync(file, { force: true })
}

const isAlive = (pid: number): boolean => {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
