import { LostBlob } from '../../content/lostBlob.ts'
import { AppError, isAppError } from '../../errors.ts'
import type { File } from '../../events/file.ts'

/** Attempts to read a file that gets new content each time, before the caller is asked to retry. */
const TRIES = 32

/**
 * Reads the content of the file that `find` returns. If it was replaced since, the file is found and read again. Rejects with
 * `not_found` if `find` does, and with `unavailable` if the content is missing, or is replaced each time.
 */
export const readCurrent = async <Result>(
  find: () => Promise<File>,
  read: (file: File) => Promise<Result>,
): Promise<Result> => {
  let missing: string | undefined
  for (let tries = 1; ; tries++) {
    const file = await find()
    if (file.key === missing)
      throw new LostBlob(
        `The content of the file ${JSON.stringify(file.path)} is missing: the blob ${file.key}`,
      )
    try {
      return await read(file)
    } catch (error) {
      if (!isAppError(error, 'not_found')) throw error
      if (tries === TRIES)
        throw new AppError('unavailable', 'The content of the file is being replaced', { cause: error })
      missing = file.key // it may have just got new content
    }
  }
}
