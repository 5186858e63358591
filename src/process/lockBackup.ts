import { join } from 'node:path'
import { diskError, LOCK, prepareFolder } from '../backup/backupFolder.ts'
import { AppError } from '../errors.ts'
import { lockFile } from '../disk/lockFile.ts'

/** Locks the directory of a backup, because two processes would mix their files. Returns a function that unlocks it. */
export const lockBackup = (dir: string): (() => void) => {
  prepareFolder(dir)
  let unlock: (() => void) | null
  try {
    unlock = lockFile(join(dir, LOCK))
  } catch (error) {
    throw diskError(dir, error)
  }
  if (!unlock)
    throw new AppError('unavailable', `${dir}: another process is writing this backup; wait until it ends`)
  return unlock
}
