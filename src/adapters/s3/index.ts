import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { AppError } from '../../errors.ts'
import {
  type BlobInfo,
  type Blobs,
  MIN_PART_BYTES,
  type PendingUpload,
  type UploadedPart,
} from '../../ports/blobs.ts'
import { checkedKey, mayBeginKey } from '../shared/blobKeys.ts'
import { Sender } from '../shared/sender.ts'
import { parseAddress } from './address.ts'
import { Client } from './client.ts'
import { bytesOf } from './exchange.ts'
import { appErrorOf, demandS3, isMissing, openingErrorOf, statusOf } from './failures.ts'
import { Multipart, type Stat } from './multipart.ts'
import { put, putWhole } from './put.ts'
import { elementsOf, required } from './xml.ts'

/**
 * Opens blobs in a bucket. Rejects with `bad_request` and a remedy if the bucket is missing or S3 refuses the key,
 * and with `unavailable` if S3 does not answer.
 */
export const openS3Blobs = async (url: string): Promise<Blobs> => {
  const address = parseAddress(url)
  const client = new Client(address)
  try {
    const query = { 'list-type': '2', prefix: address.prefix, 'max-keys': '1' }
    demandS3(await client.control('GET', query), address.place)
  } catch (error) {
    client.close()
    throw openingErrorOf(error, address.place)
  }
  return new S3Blobs(client, address.place)
}

/** Whether a body that is cut off can be recognized. The end of a connection alone proves nothing. */
const hasEnd = ({ headers }: IncomingMessage): boolean =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined

class S3Blobs implements Blobs {
  readonly backend = 's3'
  readonly #client: Client
  readonly #multipart: Multipart
  readonly #place: string

  constructor(client: Client, place: string) {
    this.#client = client
    this.#multipart = new Multipart(client, (key) => this.#stat(key))
    this.#place = place
  }

  async put(key: string, content: AsyncIterable<Uint8Array> | Uint8Array): Promise<BlobInfo> {
    checkedKey(key)
    const [client, multipart] = [this.#client, this.#multipart]
    if (content instanceof Uint8Array && content.length <= MIN_PART_BYTES) {
      return this.#asking(putWhole(client, key, content))
    }
    return this.#sending(content, (bytes) => put({ client, multipart }, key, bytes))
  }

  async get(key: string, range?: { from: number; to?: number }): Promise<Readable> {
    checkedKey(key)
    const headers = range && { range: `bytes=${range.from}-${range.to ?? ''}` }
    try {
      const response = await this.#client.send({ method: 'GET', key, headers })
      if (!hasEnd(response)) {
        response.destroy()
        throw new AppError('unavailable', `S3 sent blob ${key} without its length`)
      }
      const bytes = Readable.from(this.#named(bytesOf(response)), { objectMode: false })
      return bytes.once('close', () => response.destroy()) // the generator is not entered if nothing is read
    } catch (error) {
      if (statusOf(error) === 416) return Readable.from([]) // the range is beyond the end
      if (isMissing(error)) throw new AppError('not_found', `No blob ${key}`, { cause: error })
      throw appErrorOf(error, this.#place)
    }
  }

  async head(key: string): Promise<BlobInfo | null> {
    const found = await this.#asking(this.#stat(checkedKey(key)))
    return found && { key, size: found.size }
  }

  async remove(key: string): Promise<void> {
    await this.#asking(
      this.#client.sendForHeaders({ method: 'DELETE', key: checkedKey(key) }).catch((error: unknown) => {
        if (!isMissing(error)) throw error
      }),
    )
  }

  list(prefix: string): AsyncIterable<BlobInfo> {
    return this.#named(this.#list(prefix))
  }

  async close(): Promise<void> {
    this.#client.close()
  }

  createUpload(key: string): Promise<string> {
    return this.#asking(this.#multipart.createUpload(key))
  }

  putPart(
    key: string,
    uploadId: string,
    partNumber: number,
    content: AsyncIterable<Uint8Array>,
    size: number,
  ): Promise<UploadedPart> {
    return this.#sending(content, (bytes) => this.#multipart.putPart(key, uploadId, partNumber, bytes, size))
  }

  completeUpload(key: string, uploadId: string, parts: readonly UploadedPart[]): Promise<BlobInfo> {
    return this.#asking(this.#multipart.completeUpload(key, uploadId, parts))
  }

  listParts(key: string, uploadId: string): AsyncIterable<UploadedPart> {
    return this.#named(this.#multipart.listParts(key, uploadId))
  }

  abortUpload(key: string, uploadId: string): Promise<void> {
    return this.#asking(this.#multipart.abortUpload(key, uploadId))
  }

  listUploads(): AsyncIterable<PendingUpload> {
    return this.#named(this.#multipart.listUploads())
  }

  async #stat(key: string): Promise<Stat | null> {
    try {
      const { headers } = await this.#client.sendForHeaders({ method: 'HEAD', key })
      return { key, size: Number(headers['content-length']), etag: headers.etag?.replaceAll('"', '') ?? '' }
    } catch (error) {
      if (statusOf(error) === 404 && (await this.#isAbsent(key))) return null
      throw error
    }
  }

  /** A reply to HEAD has no body that says what is missing, so the first byte is requested. */
  async #isAbsent(key: string): Promise<boolean> {
    try {
      await this.#client.sendForHeaders({ method: 'GET', key, headers: { range: 'bytes=0-0' } })
      return false
    } catch (error) {
      if (statusOf(error) === 416) return false // it exists, and is empty
      if (isMissing(error)) return true
      throw error
    }
  }

  async *#list(prefix: string): AsyncGenerator<BlobInfo> {
    if (!mayBeginKey(prefix)) return
    // MinIO refuses a prefix that ends in a relative path segment.
    const asked = this.#client.namePrefixOf(prefix.replace(/(?<=^|\/)\.{1,2}$/, ''))
    let after: Record<string, string> = {}
    for (;;) {
      const query = { 'list-type': '2', prefix: asked, ...after }
      const xml = await this.#client.control('GET', query, { root: 'ListBucketResult' })
      for (const object of elementsOf(xml, 'Contents')) {
        const key = this.#client.keyOf(required(object, 'Key'))
        if (key?.startsWith(prefix)) yield { key, size: Number(required(object, 'Size')) }
      }
      if (required(xml, 'IsTruncated') !== 'true') return
      after = { 'continuation-token': required(xml, 'NextContinuationToken') }
    }
  }

  async #sending<T>(
    content: AsyncIterable<Uint8Array> | Uint8Array,
    work: (bytes: AsyncIterable<Uint8Array>) => Promise<T>,
  ): Promise<T> {
    const sender = new Sender(content)
    try {
      return await work(sender.read())
    } catch (error) {
      throw sender.failed ? error : appErrorOf(error, this.#place)
    } finally {
      sender.stop()
    }
  }

  async #asking<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      throw appErrorOf(error, this.#place)
    }
  }

  async *#named<T>(work: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* work
    } catch (error) {
      throw appErrorOf(error, this.#place)
    }
  }
}
