import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { adviceFor, isFullDisk } from '../disk/fullDisk.ts'
import { syncFolder } from '../disk/sync.ts'
import { AppError, messageOf } from '../errors.ts'

/** A file that is being written. */
export interface NewFile {
  /** Its present path. */
  readonly part: string
  readonly append: (bytes: string | Uint8Array) => Promise<void>
}

/**
 * Writes a file that only its owner can read. It appears when it is complete and on disk; a failure leaves none. Rejects
 * with `bad_request` if it exists or cannot be written.
 */
export const writeNewFile = async <T>(file: string, write: (to: NewFile) => Promise<T>): Promise<T> => {
  checkFree(file)
  const part = `${file}.part`
  if (existsSync(part))
    throw new AppError(
      'bad_request',
      `${part} exists: another command writes it, or was killed; remove it if none does, and repeat this one`,
    )
  const refused = (error: unknown) => {
    throw new AppError('bad_request', `cannot write ${part}: ${messageOf(error)}${adviceFor(error)}`, {
      cause: error,
    })
  }
  const handle = await open(part, 'wx', 0o600).catch(refused)
  let isPlaced = false
  try {
    const result = await write({ part, append: (bytes) => handle.appendFile(bytes).catch(refused) })
    await handle.sync().catch(refused)
    checkFree(file) // another process may have written it meanwhile
    await rename(part, file).catch(refused)
    isPlaced = true
    await syncFolder(dirname(file))
    return result
  } finally {
    await handle.close()
    if (!isPlaced) await unlink(part)
  }
}

const checkFree = (file: string): void => {
  if (!existsSync(file)) return
  const fix = statSync(file).isDirectory() ? 'name a file in it' : 'remove it, or name another file'
  throw new AppError('bad_request', `${file} exists already: ${fix}`)
}

/** Writes a file that can be made again, in place of an earlier one. If the disk becomes full, no part of it remains. */
export const writeAgain = (file: string, content: string | Uint8Array): void => {
  try {
    writeFileSync(file, content)
  } catch (error) {
    if (isFullDisk(error) && statSync(file, { throwIfNoEntry: false })?.isFile()) rmSync(file)
    throw error
  }
}
