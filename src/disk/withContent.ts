import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'

/**
 * Passes the content of a file to `use`, and closes the file afterwards. A stream closes its file only when it is read,
 * and `use` may fail before that.
 */
export const withContent = async <T>(path: string, use: (content: Readable) => Promise<T>): Promise<T> => {
  const file = await open(path)
  try {
    return await use(file.createReadStream())
  } finally {
    await file.close()
  }
}
