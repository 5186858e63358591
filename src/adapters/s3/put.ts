import { AppError } from '../../errors.ts'
import { type BlobInfo, MAX_PARTS, MIN_PART_BYTES, type UploadedPart } from '../../ports/blobs.ts'
import { bodyOf, type Client } from './client.ts'
import type { Multipart } from './multipart.ts'

/** Each put has one part in memory, so a part has the smallest size that S3 accepts. 10,000 parts are 50 GB. */
const PART_BYTES = MIN_PART_BYTES
const FIRST_BYTES = 64 << 10

/** Sends small content in one request and larger content as a multipart upload, which is aborted after a failure. */
export const put = async (
  { client, multipart }: { client: Client; multipart: Multipart },
  key: string,
  content: AsyncIterable<Uint8Array>,
): Promise<BlobInfo> => {
  const parts = partsOf(content)
  const first = await parts.next()
  if (first.value.last) return putWhole(client, key, first.value.bytes)
  return putParts(multipart, key, first.value, parts)
}

/** Sends bytes in one request. */
export const putWhole = async (client: Client, key: string, bytes: Uint8Array): Promise<BlobInfo> => {
  await client.sendForHeaders({ method: 'PUT', key, body: bodyOf(bytes) })
  return { key, size: bytes.length }
}

/** Reads the next part only after the previous one is sent, because both use the same buffer. */
const putParts = async (
  multipart: Multipart,
  key: string,
  first: Part,
  more: AsyncGenerator<Part, Part>,
): Promise<BlobInfo> => {
  const uploadId = await multipart.createUpload(key)
  const sent: UploadedPart[] = []
  try {
    for (let part = first; ; part = (await more.next()).value) {
      if (sent.length === MAX_PARTS)
        throw new AppError('payload_too_large', `Blob ${key} is larger than 50 GB`)
      sent.push(await multipart.putBytes(key, uploadId, sent.length + 1, part.bytes))
      if (part.last) return await multipart.completeUpload(key, uploadId, sent)
    }
  } catch (error) {
    await multipart.abortUpload(key, uploadId).catch(() => {}) // the sweep of old uploads removes it later
    throw error
  }
}

interface Part {
  readonly bytes: Uint8Array
  readonly last: boolean
}

/**
 * Splits content into parts; the last may be short. A part is valid until the next is requested: they share a buffer.
 */
async function* partsOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<Part, Part> {
  let filling: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES)
  let filled = 0
  for await (const chunk of content) {
    for (let at = 0; at < chunk.length;) {
      if (filled === PART_BYTES) {
        yield { bytes: filling, last: false }
        filled = 0
      }
      if (filled === filling.length) filling = grown(filling)
      const taken = chunk.subarray(at, at + filling.length - filled)
      filling.set(taken, filled)
      filled += taken.length
      at += taken.length
    }
  }
  return { bytes: filling.subarray(0, filled), last: true }
}

const grown = (full: Buffer): Buffer => {
  const larger = Buffer.allocUnsafeSlow(Math.min(full.length * 4, PART_BYTES))
  larger.set(full)
  return larger
}
