import { hash } from 'node:crypto'
import { AppError } from '../errors.ts'

/** The file that makes a directory a backup. It is replaced last, so it names only files that are complete. */
export const MANIFEST = 'backup.json'
const FORMAT = 'svc backup'
/** The version of the format that this build reads and writes. */
const VERSION = 1

/** Bytes, with their SHA-256 in hex. */
export interface Sum {
  readonly bytes: number
  readonly sha256: string
}

/** A part of the log in a file of its own, which never changes. */
export interface Segment extends Sum {
  /** Relative to the directory of the backup. */
  readonly file: string
  readonly first: number
  readonly last: number
  /** The last row. A log that has another row at this position is another log. */
  readonly last_row: { readonly first: number; readonly sha256: string }
}

export interface Manifest {
  /** ISO 8601 UTC. */
  readonly created_at: string
  readonly log_id: string
  /** The last position of the log. */
  readonly position: number
  readonly master_key_id: string
  /** A text that only this master key opens. */
  readonly canary: string
  readonly segments: readonly Segment[]
  /** The list of all blobs, in `content/`. */
  readonly blobs: Sum & { readonly count: number; readonly content_bytes: number }
  /** The positions of consumers, in `content/`. */
  readonly consumers: Sum
}

/** The text of a manifest. It ends in a checksum of the rest, so any changed byte is noticed. */
export const manifestText = (manifest: Manifest): string => {
  const { created_at, log_id, position, master_key_id, canary, segments, blobs, consumers } = manifest
  const all = {
    format: FORMAT,
    version: VERSION,
    created_at,
    log_id,
    position,
    master_key_id,
    canary,
    blobs,
    consumers,
    segments,
  }
  return `${JSON.stringify({ ...all, checksum: hash('sha256', JSON.stringify(all)) }, null, 2)}\n`
}

/** Parses the text of a manifest. `file` is named in errors. Throws `bad_request` unless it is as it was written. */
export const parseManifest = (text: string, file: string): Manifest => {
  const value = parsed(text)
  if (value?.['format'] !== FORMAT)
    throw new AppError(
      'bad_request',
      `${file}: expected the manifest of a backup, got another or a damaged file`,
    )
  const { version } = value
  if (typeof version === 'number' && version > VERSION)
    throw new AppError(
      'bad_request',
      `${file}: the backup has format ${version}, and this version of svc reads formats up to ${VERSION}; upgrade svc`,
    )
  if (!isManifest(value) || text !== manifestText(value))
    throw new AppError('bad_request', `${file}: the file is damaged`)
  return value
}

const isManifest = (value: object): value is Manifest => {
  const manifest = value as Partial<Record<keyof Manifest, unknown>>
  const { segments, blobs, consumers, position } = manifest
  const texts = [manifest.created_at, manifest.log_id, manifest.master_key_id, manifest.canary]
  return (
    texts.every((text) => typeof text === 'string') &&
    isCount(position) &&
    isSum(blobs) &&
    isSum(consumers) &&
    Array.isArray(segments) &&
    segments.every(isSegment)
  )
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0

const isSum = (value: unknown): boolean => {
  const { bytes, sha256 } = (value ?? {}) as Partial<Record<keyof Sum, unknown>>
  return isCount(bytes) && typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256)
}

const isSegment = (value: unknown): boolean => {
  const { first, last, last_row: row } = (value ?? {}) as Partial<Record<keyof Segment, unknown>>
  return isSum(value) && isCount(first) && isCount(last) && typeof row === 'object' && row !== null
}

const parsed = (text: string): Readonly<Record<string, unknown>> | null => {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' ? (value as Readonly<Record<string, unknown>> | null) : null
  } catch {
    return null
  }
}
