import type { Readable } from 'node:stream'
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
      const bytes = Buffer.isBuffer(piece) ? piece.length : piece.to - piece.from
      size += bytes
      parts.push(
        Buffer.isBuffer(piece)
          ? piece
          : await openSection(blobs, { key: piece.key, from: piece.from, bytes }),
      )
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
export const opened = async (blobs: Pick<Blobs, 'get'>, { key, from, to }: StoredJson): Promise<Readable> => {
  const stream = await blobs.get(key, { from, to: to - 1 })
  stream.on('error', () => {}) // reported where it is read
  return stream
}
