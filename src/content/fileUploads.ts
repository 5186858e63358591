import { createHash } from 'node:crypto'
import { clock, isoOf } from '../clock.ts'
import type { Cause } from '../events/event.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import type { Immutable } from '../domain/immutable.ts'
import { assembled, type UploadState } from '../domain/upload.ts'
import { AppError, isAppError } from '../errors.ts'
import type { File } from '../events/file.ts'
import { streamOf } from '../events/streams.ts'
import type { Part, Upload } from '../events/upload.ts'
import { newId } from '../ids.ts'
import type { Blobs } from '../ports/blobs.ts'
import { contentKey, type Files, type Writing } from './files.ts'

/** An upload that is not complete by then is removed. */
export const EXPIRES_MS = 24 * 3600_000
/** 10,000 of these are more than any plan lets one file have. */
const PART_BYTES = 16 << 20
/** SPEC.md, Limits. */
export const MAX_PART_BYTES = 256 << 20

export type Pending = Extract<Immutable<UploadState>, { upload: Upload }>

/**
 * Files that come in parts, each by a request of its own, to any node. What came is in the log, so an upload goes on
 * after a restart of whoever. The parts become the file in three steps that can each be repeated: the blobs put them
 * together, the file gets the content, the upload ends.
 */
export class FileUploads {
  readonly #aggregates: Pick<Aggregates, 'uploads'>
  readonly #blobs: Blobs
  readonly #files: Files

  constructor({
    aggregates,
    blobs,
    files,
  }: {
    aggregates: Pick<Aggregates, 'uploads'>
    blobs: Blobs
    files: Files
  }) {
    this.#aggregates = aggregates
    this.#blobs = blobs
    this.#files = files
  }

  /**
   * Rejects with `quota_exceeded` when a file of the size expected could not be kept. With an id that has begun already
   * it is the same upload.
   */
  async begin(
    { env_id, path, content_type, run_id, cause }: Writing,
    expected_size: number | undefined,
    upload_id = newId(),
  ): Promise<Upload> {
    const begun = await this.#stateOf(upload_id)
    if ('upload' in begun) return begun.upload
    if (expected_size !== undefined) await this.#checkQuota(env_id, path, expected_size)
    const key = contentKey(env_id, newId())
    const upload: Upload = {
      upload_id,
      path,
      content_type,
      key,
      blob_upload_id: await this.#blobs.createUpload(key),
      ...(expected_size !== undefined && { expected_size }),
      part_size: PART_BYTES,
      parts_expected: Math.max(1, Math.ceil((expected_size ?? 0) / PART_BYTES)),
      by_run_id: run_id,
      expires_at: isoOf(clock.now() + EXPIRES_MS),
    }
    const command = { type: 'BeginUpload', upload } as const
    await this.#aggregates.uploads.handle(streamOf.upload(upload_id), command, cause)
    return upload
  }

  /** An upload of the environment, complete ones included; `not_found` for everything else (I7). */
  async get(env_id: string, upload_id: string): Promise<Pending> {
    const state = await this.#stateOf(upload_id)
    if (!('upload' in state) || state.env_id !== env_id || isOver(state))
      throw new AppError('not_found', `No upload ${upload_id}`)
    return state
  }

  /** Streams one part of `size` bytes; the same number again replaces it. */
  async putPart(
    pending: Pending,
    { part_number, size, content }: { part_number: number; size: number; content: AsyncIterable<Buffer> },
    cause: Cause,
  ): Promise<Part> {
    const { env_id, upload, parts } = pending
    if (pending.status !== 'pending') throw new AppError('not_found', `No upload ${upload.upload_id}`)
    let whole = size - (parts.get(part_number)?.size ?? 0)
    for (const part of parts.values()) whole += part.size
    this.#checkFileSize(env_id, whole)
    const digest = createHash('sha256')
    const hashed = async function* () {
      for await (const chunk of content) {
        digest.update(chunk)
        yield chunk
      }
    }
    const { key, blob_upload_id } = upload
    const put = await this.#blobs.putPart(key, blob_upload_id, part_number, hashed(), size)
    const part = { part_number, size, etag: `"${digest.digest('hex')}"`, blob_etag: put.etag }
    const command = { type: 'AddPart', part, now: clock.iso() } as const
    await this.#aggregates.uploads.handle(streamOf.upload(upload.upload_id), command, cause)
    return part
  }

  /** Makes the file. Asked twice it answers twice, as long as the file is there. */
  async complete(pending: Pending, cause: Cause): Promise<File> {
    const { env_id, upload } = pending
    const { upload_id, path, key, content_type, by_run_id } = upload
    if (pending.status === 'completed') {
      const file = await this.#files.at(env_id, path)
      if (!file) throw new AppError('not_found', `No upload ${upload_id}`)
      return file
    }
    const { parts, size } = assembled(pending)
    await this.#checkQuota(env_id, path, size)
    await this.#assemble(upload, parts, size)
    const file = await this.#files.commit(
      { env_id, path, content_type, run_id: by_run_id, cause },
      { file_id: newId(), path, key, size, etag: etagOf(parts) },
    )
    await this.#aggregates.uploads.handle(streamOf.upload(upload_id), { type: 'CompleteUpload' }, cause)
    return file
  }

  /** Ends an upload whose time is over, if nobody has; whether it did. */
  async expire(env_id: string, upload_id: string): Promise<boolean> {
    const state = await this.#stateOf(upload_id)
    if (state.status !== 'pending') return false
    await this.abort(state, 'expired', { env_id, correlation_id: upload_id })
    return true
  }

  /** Ends the upload and removes what there is of it. */
  async abort(
    { upload: { upload_id, key, blob_upload_id } }: Pick<Pending, 'upload'>,
    reason: 'asked' | 'expired',
    cause: Cause,
  ): Promise<void> {
    await this.#aggregates.uploads.handle(streamOf.upload(upload_id), { type: 'AbortUpload', reason }, cause)
    await this.#blobs.abortUpload(key, blob_upload_id).catch(() => {}) // the sweep will
  }

  #stateOf(upload_id: string): Promise<Immutable<UploadState>> {
    return this.#aggregates.uploads.read(streamOf.upload(upload_id), (state) =>
      'parts' in state ? { ...state, parts: new Map(state.parts) } : state,
    )
  }

  async #assemble({ key, blob_upload_id }: Upload, parts: readonly Part[], size: number): Promise<void> {
    try {
      await this.#blobs.completeUpload(
        key,
        blob_upload_id,
        parts.map(({ part_number, blob_etag }) => ({ part_number, etag: blob_etag })),
      )
    } catch (error) {
      // An earlier attempt may have come this far.
      if (!isAppError(error, 'not_found') || (await this.#blobs.head(key))?.size !== size) throw error
    }
  }

  async #checkQuota(env_id: string, path: string, size: number): Promise<void> {
    this.#checkFileSize(env_id, size)
    const former = await this.#files.at(env_id, path)
    await this.#files.quota.checkRoom(env_id, size - (former?.size ?? 0))
  }

  #checkFileSize(env_id: string, size: number): void {
    const most = this.#files.quota.maxFileBytes(env_id)
    if (size > most)
      throw new AppError('quota_exceeded', `The plan allows files of at most ${most} bytes, this has ${size}`)
  }
}

const isOver = ({ status, upload }: Pending): boolean =>
  status === 'pending' && upload.expires_at <= clock.iso()

/** As S3 does it: of the parts, and how many they were. */
const etagOf = (parts: readonly Part[]): string => {
  const digest = createHash('sha256')
  for (const { etag } of parts) digest.update(Buffer.from(etag.slice(1, -1), 'hex'))
  return `"${digest.digest('hex')}-${parts.length}"`
}
