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
}

/**
 * Opens a section of a blob. Rejects with `not_found` before anything is read. Reading fails with `LostBlob` at the end of a shorter
 * blob, and before the part with which it is longer: a reply that has announced its length would never end, or would continue
 * within the next reply.
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

async function* whole(content: AsyncIterable<Buffer>, { key, bytes }: Section): AsyncGenerator<Buffer> {
  let got = 0
  for await (const chunk of content) {
    got += chunk.length
    if (got > bytes) throw damaged(key, bytes, 'more')
    yield chunk
  }
  if (got < bytes) throw damaged(key, bytes, got)
}

const damaged = (key: string, bytes: number, got: number | 'more'): LostBlob =>
  new LostBlob(`The blob ${key} is damaged: expected ${bytes} bytes, got ${got}`)
