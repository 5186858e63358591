import { createHash } from 'node:crypto'
import { AppError, isAppError } from '../../errors.ts'
import type { BlobInfo, PendingUpload, UploadedPart } from '../../ports/blobs.ts'
import { badPart, checkedKey, checkedPartNumber, checkedParts, sizedBytes } from '../shared/blobKeys.ts'
import { type Body, bodyOf, type Client } from './client.ts'
import { codeOf } from './failures.ts'
import { elementsOf, required } from './xml.ts'

/** A stored blob with its ETag in S3. */
export interface Stat extends BlobInfo {
  readonly etag: string
}

/** The requests of S3's multipart uploads. Rejects with the errors of the library. */
export class Multipart {
  readonly #client: Client
  readonly #stat: (key: string) => Promise<Stat | null>

  constructor(client: Client, stat: (key: string) => Promise<Stat | null>) {
    this.#client = client
    this.#stat = stat
  }

  async createUpload(key: string): Promise<string> {
    const xml = await this.#client.control('POST', { uploads: '' }, { key: checkedKey(key) })
    return required(xml, 'UploadId')
  }

  putPart(
    key: string,
    uploadId: string,
    partNumber: number,
    content: AsyncIterable<Uint8Array>,
    size: number,
  ): Promise<UploadedPart> {
    const body = { size, repeatable: false, open: () => sizedBytes(content, size) }
    return this.#put(key, uploadId, partNumber, body)
  }

  /** Sends a part from memory, so that it can be sent again. */
  putBytes(key: string, uploadId: string, partNumber: number, bytes: Uint8Array): Promise<UploadedPart> {
    return this.#put(key, uploadId, partNumber, bodyOf(bytes))
  }

  async completeUpload(key: string, uploadId: string, parts: readonly UploadedPart[]): Promise<BlobInfo> {
    checkedKey(key)
    checkedId(uploadId)
    const payload = completionOf(checkedParts(parts))
    let lost = false
    const onRetry = () => (lost = true)
    try {
      const root = 'CompleteMultipartUploadResult'
      await this.#client.control('POST', { uploadId }, { key, payload, root, onRetry })
    } catch (error) {
      // The response to the first request was lost: S3 has completed the upload and no longer knows it.
      const done = lost && codeOf(error) === 'NoSuchUpload' && (await this.#stat(key))?.etag === etagOf(parts)
      if (!done) throw error
    }
    const found = await this.#stat(key)
    if (!found) throw new AppError('unavailable', `Blob ${key} was removed while its upload was completed`)
    return { key, size: found.size }
  }

  async *listParts(key: string, uploadId: string): AsyncGenerator<UploadedPart> {
    let after: Record<string, string> = {}
    for (;;) {
      const query = { uploadId: checkedId(uploadId), ...after }
      const xml = await this.#client.control('GET', query, { key: checkedKey(key), root: 'ListPartsResult' })
      for (const part of elementsOf(xml, 'Part'))
        yield {
          part_number: Number(required(part, 'PartNumber')),
          etag: required(part, 'ETag').replaceAll('"', ''),
        }
      if (required(xml, 'IsTruncated') !== 'true') return
      after = { 'part-number-marker': required(xml, 'NextPartNumberMarker') }
    }
  }

  async abortUpload(key: string, uploadId: string): Promise<void> {
    try {
      const query = { uploadId: checkedId(uploadId) }
      await this.#client.sendForHeaders({ method: 'DELETE', key: checkedKey(key), query })
    } catch (error) {
      if (codeOf(error) !== 'NoSuchUpload' && !isAppError(error, 'not_found')) throw error
    }
  }

  /** Lists all uploads of the bucket, because MinIO accepts only a full object name as the prefix. */
  async *listUploads(): AsyncGenerator<PendingUpload> {
    let after: Record<string, string> = {}
    for (;;) {
      const root = 'ListMultipartUploadsResult'
      const xml = await this.#client.control('GET', { uploads: '', ...after }, { root })
      for (const upload of elementsOf(xml, 'Upload')) {
        const key = this.#client.keyOf(required(upload, 'Key'))
        if (key === null) continue
        yield {
          key,
          upload_id: required(upload, 'UploadId'),
          begun_at: new Date(required(upload, 'Initiated')).toISOString(),
        }
      }
      if (required(xml, 'IsTruncated') !== 'true') return
      after = {
        'key-marker': required(xml, 'NextKeyMarker'),
        'upload-id-marker': required(xml, 'NextUploadIdMarker'),
      }
    }
  }

  async #put(key: string, uploadId: string, partNumber: number, body: Body): Promise<UploadedPart> {
    const query = { partNumber: String(checkedPartNumber(partNumber)), uploadId: checkedId(uploadId) }
    const { headers } = await this.#client.sendForHeaders({
      method: 'PUT',
      key: checkedKey(key),
      query,
      body,
    })
    const etag = headers.etag?.replaceAll('"', '')
    if (!etag) throw badPart(partNumber)
    return { part_number: partNumber, etag }
  }
}

/** MinIO uses upload ids as paths, and its errors for invalid ones are not those of S3. */
const checkedId = (uploadId: string): string => {
  if (/^(?!.*\.\.)[\x21-\x7e]{1,1024}$/.test(uploadId)) return uploadId
  throw new AppError('not_found', 'No such upload')
}

const completionOf = (parts: readonly UploadedPart[]): string => {
  const listed = parts.map(
    ({ part_number: number, etag }) =>
      `<Part><PartNumber>${number}</PartNumber><ETag>"${etag}"</ETag></Part>`,
  )
  return `<CompleteMultipartUpload>${listed.join('')}</CompleteMultipartUpload>`
}

/** The ETag that S3 computes for a blob of parts, unless it encrypts with its own keys. */
const etagOf = (parts: readonly UploadedPart[]): string => {
  const digest = createHash('md5')
  for (const { etag } of parts) digest.update(etag, 'hex')
  return `${digest.digest('hex')}-${parts.length}`
}
