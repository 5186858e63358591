import { createHash } from 'node:crypto'
import type { Blobs } from '../ports/blobs.ts'
import { LostBlob } from './lostBlob.ts'

/** Content that is read while it is sent. */
export interface Content {
  /** Bytes. */
  readonly size: number
  /** To be read once. */
  readonly chunks: AsyncIterable<Buffer>
  /** Releases what was opened, also when nothing was read. */
  readonly close: () => void
}

/** `bytes` bytes of a blob: from `from` on; absent: the whole blob. */
export interface Section {
  readonly key: string
  readonly from?: number
  readonly bytes: number
  /** Hex SHA-256 of these bytes, if it is known. */
  readonly sha256?: string
}

/**
 * Opens a section of a blob. Rejects with `not_found` before anything is read. Reading fails with `LostBlob` for fewer or other
 * bytes before `bytes` of them were yielded, and for more bytes before any further one. Otherwise a reply that has announced its length
 * would never end, would pass for complete, or would continue within the next reply.
 */
export const openSection = async (blobs: Pick<Blobs, 'get'>, section: Section): Promise<Content> => {
  const { key, from, bytes } = section
  const stream = await blobs.get(key, from === undefined ? undefined : { from, to: from + bytes - 1 })
  stream.on('error', () => {}) // reported where it is read
  return {
    size: bytes,
    chunks: whole(stream as AsyncIterable<Buffer>, section),
    close: () => stream.destroy(),
  }
}

async function* whole(
  content: AsyncIterable<Buffer>,
  { key, bytes, sha256 }: Section,
): AsyncGenerator<Buffer> {
  const hash = sha256 === undefined ? null : createHash('sha256')
  let got = 0
  for await (const chunk of content) {
    got += chunk.length
    if (got > bytes) throw damaged(key, `expected ${bytes} bytes, got more`)
    hash?.update(chunk)
    if (got === bytes && hash && hash.digest('hex') !== sha256) throw damaged(key, 'its bytes have changed')
    yield chunk
  }
  if (got < bytes) throw damaged(key, `expected ${bytes} bytes, got ${got}`)
}

const damaged = (key: string, how: string): LostBlob => new LostBlob(`The blob ${key} is damaged: ${how}`)
