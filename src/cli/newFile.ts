import { existsSync } from 'node:fs'
import { open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
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
    throw new AppError('bad_request', `cannot write ${part}: ${messageOf(error)}`, { cause: error })
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
  if (existsSync(file))
    throw new AppError('bad_request', `${file} exists already: remove it, or name another file`)
}
