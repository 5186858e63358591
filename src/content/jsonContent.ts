import { jsonPieces, type StoredJson } from '../events/rawJson.ts'
import type { Blobs } from '../ports/blobs.ts'
import { type Content, openSection } from './blobContent.ts'

/**
 * Converts a value to JSON whose parts in the blobs are read while they are sent, so that no large value is in memory.
 * Rejects with `not_found` before anything is sent if a part no longer exists.
 */
export const openJson = async (blobs: Pick<Blobs, 'get'>, value: unknown): Promise<Content> => {
  const parts: (Buffer | Content)[] = []
  const close = () => {
    for (const part of parts) if (!Buffer.isBuffer(part)) part.close()
  }
  let size = 0
  try {
    for (const piece of jsonPieces(value)) {
      const part = Buffer.isBuffer(piece) ? piece : await openStored(blobs, piece)
      size += Buffer.isBuffer(part) ? part.length : part.size
      parts.push(part)
    }
  } catch (error) {
    close()
    throw error
  }
  const chunks = async function* (): AsyncGenerator<Buffer> {
    try {
      for (const part of parts)
        if (Buffer.isBuffer(part)) yield part
        else yield* part.chunks
    } finally {
      close()
    }
  }
  return { size, chunks: chunks(), close }
}

/** Opens a value in the blobs as its JSON. */
export const openStored = (blobs: Pick<Blobs, 'get'>, { key, from, to }: StoredJson): Promise<Content> =>
  openSection(blobs, { key, from, bytes: to - from })
