import type { Readable } from 'node:stream'

export interface BlobInfo {
  readonly key: string
  /** Bytes. */
  readonly size: number
}

/**
 * Bytes by key: builds, files, large payloads. Keys are `/`-separated segments of `[A-Za-z0-9._-]`.
 * A put is durable and whole when it resolves; nothing of a failed put can be read. Adapters: embedded
 * (disk), S3. Errors: `not_found`, `unavailable`.
 */
export interface Blobs {
  /** `disk` or `s3`: the `storage_backend` of SPEC.md. */
  readonly backend: string
  put(key: string, content: Readable | Uint8Array): Promise<BlobInfo>
  /** Bytes `from`..`to` inclusive, default all. Rejects with `not_found` before any byte flows. */
  get(key: string, range?: { from: number; to?: number }): Promise<Readable>
  head(key: string): Promise<BlobInfo | null>
  /** Removing what is not there is no error. */
  remove(key: string): Promise<void>
  list(prefix: string): AsyncIterable<BlobInfo>
  close(): Promise<void>
}
