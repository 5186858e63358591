import { jsonPieces, type StoredJson } from '../events/rawJson.ts'
import type { Blobs } from '../ports/blobs.ts'

/** JSON that is read while it is sent. */
export interface JsonContent {
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
export const openJson = async (blobs: Pick<Blobs, 'get'>, value: unknown): Promise<JsonContent> => {
  const pieces = jsonPieces(value)
  const opened = new Map<StoredJson, Awaited<ReturnType<Blobs['get']>>>()
  const close = () => {
    for (const stream of opened.values()) stream.destroy()
  }
  let size = 0
  for (const piece of pieces) {
    if (Buffer.isBuffer(piece)) size += piece.length
    else {
      const { key, from, to } = piece
      size += to - from
      const stream = await blobs.get(key, { from, to: to - 1 })
      stream.on('error', () => {}) // reported where it is read
      opened.set(piece, stream)
    }
  }
  const chunks = async function* (): AsyncGenerator<Buffer> {
    try {
      for (const piece of pieces)
        if (Buffer.isBuffer(piece)) yield piece
        else yield* opened.get(piece) as AsyncIterable<Buffer>
    } finally {
      close()
    }
  }
  return { size, chunks: chunks(), close }
}
