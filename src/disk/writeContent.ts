import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import type { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/**
 * Writes content to a file. The file is closed when this settles, so that the caller can remove it: a stream that has
 * failed may still create its file.
 */
export const writeContent = async (
  path: string,
  content: AsyncIterable<Buffer> | Readable,
  ...checks: readonly Transform[]
): Promise<void> => {
  const file = createWriteStream(path)
  try {
    await pipeline([content, ...checks, file])
  } finally {
    if (!file.closed) await once(file, 'close')
  }
}
