import type { Readable } from 'node:stream'
import { jsonPieces, type StoredJson } from '../events/rawJson.ts'
import type { Blobs } from '../ports/blobs.ts'

/** Content that is read while it is sent. */
export interface Content {
  /** Bytes. */
  readonly size: number
  /** To be read once. */
  readonly chunks: AsyncIterable<Buffer>
  /** Releases what was opened, also when nothing was read. */
  readonly close: () => void
}

/**
 * Converts a value to JSON whose parts in the blobs are read while they are sent, so that no large value is in memory.
 * Rejects with `not_found` before anything is sent if a part no longer exists.
 */
export const openJson = async (blobs: Pick<Blobs, 'get'>, value: unknown): Promise<Content> => {
  const parts: (Buffer | Readable)[] = []
  const close = () => {
    for (const part of parts) if (!Buffer.isBuffer(part)) part.destroy()
  }
  let size = 0
  try {
    for (const piece of jsonPieces(value)) {
      size += Buffer.isBuffer(piece) ? piece.length : piece.to - piece.from
      parts.push(Buffer.isBuffer(piece) ? piece : await opened(blobs, piece))
    }
  } catch (error) {
    close()
    throw error
  }
  const chunks = async function* (): AsyncGenerator<Buffer> {
    try {
      for (const part of parts)
        if (Buffer.isBuffer(part)) yield part
        else yield* part as AsyncIterable<Buffer>
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
