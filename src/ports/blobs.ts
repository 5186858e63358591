import type { Readable } from 'node:stream'

export interface BlobInfo {
  readonly key: string
  /** Bytes. */
  readonly size: number
}

/** A part as `putPart` took it. The `etag` is opaque and without quotes. */
export interface UploadedPart {
  readonly part_number: number
  readonly etag: string
}

/** An upload that is neither complete nor aborted. */
export interface PendingUpload {
  readonly key: string
  readonly upload_id: string
  /** ISO 8601. */
  readonly begun_at: string
}

/** What S3 asks of every part but the last, and so every adapter: 5 MiB. */
export const MIN_PART_BYTES = 5 << 20
export const MAX_PARTS = 10_000

/**
 * Bytes by key: builds, files, large payloads. Keys are `/`-separated segments of `[A-Za-z0-9._-]`.
 * A put is durable and whole when it resolves; nothing of a failed put can be read. Adapters: embedded
 * (disk), S3. Errors: `not_found`, `unavailable`.
 */
export interface Blobs extends Uploads {
  /** `disk` or `s3`: the `storage_backend` of SPEC.md. */
  readonly backend: string
  put(key: string, content: AsyncIterable<Uint8Array> | Uint8Array): Promise<BlobInfo>
  /**
   * Bytes `from`..`to` inclusive, default all; none when there are none there. Rejects with `not_found` before any byte
   * flows; what goes wrong later is the error of the stream.
   */
  get(key: string, range?: { from: number; to?: number }): Promise<Readable>
  head(key: string): Promise<BlobInfo | null>
  /** Removing what is not there is no error. */
  remove(key: string): Promise<void>
  list(prefix: string): AsyncIterable<BlobInfo>
  close(): Promise<void>
}

/**
 * One blob put in parts, each by a request of its own, from any node, before and after restarts. Nothing can be read
 * before it is complete. Errors: `bad_request` for a part that is none or not the one that was put, `not_found` for an
 * upload that is unknown, complete or aborted.
 */
export interface Uploads {
  /** Begins an upload and gives its id. Several may be under way for one key. */
  createUpload(key: string): Promise<string>
  /**
   * Streams one part, numbers 1..10,000 in any order; `size` bytes, no more, no fewer. The same number again replaces
   * the part. What `content` throws is thrown.
   */
  putPart(
    key: string,
    uploadId: string,
    partNumber: number,
    content: AsyncIterable<Uint8Array>,
    size: number,
  ): Promise<UploadedPart>
  /**
   * Makes the blob of these parts, in ascending numbers; each but the last at least `MIN_PART_BYTES`. Parts not named
   * are dropped. Refused, the upload stays as it was.
   */
  completeUpload(key: string, uploadId: string, parts: readonly UploadedPart[]): Promise<BlobInfo>
  /** Removes the upload and what was put of it. Aborting what is none, or no longer, is no error. */
  abortUpload(key: string, uploadId: string): Promise<void>
  /** Every upload under way, for the sweep of those that nobody will end. */
  listUploads(): AsyncIterable<PendingUpload>
}
