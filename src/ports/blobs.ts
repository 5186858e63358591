import type { Readable } from 'node:stream'

export interface BlobInfo {
  readonly key: string
  /** Bytes. */
  readonly size: number
}

/** A part as `putPart` stored it. The `etag` is opaque and without quotes. */
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

/** The minimum size of every part but the last: the 5 MiB that S3 requires apply to every adapter. */
export const MIN_PART_BYTES = 5 << 20
export const MAX_PARTS = 10_000

/**
 * Bytes by key: builds, files, large payloads. Keys are `/`-separated segments of `[A-Za-z0-9._-]`.
 * A put is durable and complete when it resolves; a failed put leaves nothing that can be read. Adapters: embedded
 * (disk), S3. Errors: `not_found`, `unavailable`.
 */
export interface Blobs extends Uploads {
  /** `disk` or `s3`: the `storage_backend` of SPEC.md. */
  readonly backend: string
  put(key: string, content: AsyncIterable<Uint8Array> | Uint8Array): Promise<BlobInfo>
  /**
   * Bytes `from`..`to` inclusive, by default all; an empty range beyond the end. Rejects with `not_found` before any byte
   * is sent; a later failure is the error of the stream. The caller reads the stream to its end or destroys it.
   */
  get(key: string, range?: { from: number; to?: number }): Promise<Readable>
  head(key: string): Promise<BlobInfo | null>
  /** Removing a missing blob is not an error. */
  remove(key: string): Promise<void>
  list(prefix: string): AsyncIterable<BlobInfo>
  /** From now on, removed blobs whose key `keeps` accepts remain for the holder. Absent on engines with backups of their own. */
  hold?(keeps: (key: string) => boolean): HeldBlobs
  close(): Promise<void>
}

/** All blobs that existed when the hold began and are held, although they may be removed meanwhile, and newer ones. */
export interface HeldBlobs {
  get: Blobs['get']
  /** Every blob, in no promised order; one that is removed meanwhile may be listed twice. */
  list(): AsyncIterable<BlobInfo>
  /** Removes what was removed meanwhile, unless another holder remains. */
  release(): Promise<void>
}

/**
 * Uploads of one blob in parts: each part is a request of its own, from any node, before and after restarts. The blob
 * cannot be read before the upload is complete. Errors: `bad_request` for an invalid or missing part, `not_found` for an
 * upload that is unknown, complete or aborted.
 */
export interface Uploads {
  /** Starts an upload and returns its id. One key may have several uploads in progress. */
  createUpload(key: string): Promise<string>
  /**
   * Streams one part of exactly `size` bytes, numbered 1..10,000, in any order. The same number again replaces the part.
   * Rejects with the error of `content` when that fails.
   */
  putPart(
    key: string,
    uploadId: string,
    partNumber: number,
    content: AsyncIterable<Uint8Array>,
    size: number,
  ): Promise<UploadedPart>
  /**
   * Creates the blob from these parts, in ascending order; each but the last has at least `MIN_PART_BYTES`. Other parts
   * are dropped. A refusal leaves the upload unchanged.
   */
  completeUpload(key: string, uploadId: string, parts: readonly UploadedPart[]): Promise<BlobInfo>
  /** The parts that the upload has, of each number the one that was stored last. */
  listParts(key: string, uploadId: string): AsyncIterable<UploadedPart>
  /** Removes the upload and its parts. Aborting an unknown upload is not an error. */
  abortUpload(key: string, uploadId: string): Promise<void>
  /** Every upload in progress, so that a sweep can abort abandoned ones. */
  listUploads(): AsyncIterable<PendingUpload>
}
