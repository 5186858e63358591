import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { clock } from '../../clock.ts'
import { etagOf, UNKNOWN_ETAG } from '../../content/etag.ts'
import { AHEAD_BYTES, type FileQuota } from '../../content/fileQuota.ts'
import { withContent } from '../../disk/withContent.ts'
import { writeContent } from '../../disk/writeContent.ts'
import { demandRoomForPart } from '../../domain/upload.ts'
import { AppError } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { Part } from '../../events/upload.ts'
import { MAX_PARTS } from '../../ports/blobs.ts'
import { checkFileSize } from './checkFileQuota.ts'
import type { CommandDeps } from '../deps.ts'
import { pendingUpload, type UploadRef } from './uploadFor.ts'

/** SPEC.md, Limits. */
export const MAX_PART_BYTES = 256 << 20
/** Characters of a wrong number in a message. */
const MAX_SHOWN = 40

interface PartToCheck {
  readonly part_number: number
  readonly size: number
  /** The number as the client wrote it. */
  readonly written?: string
}

/** Throws `bad_request` or `payload_too_large` for a part that is invalid in every upload. */
export const checkPart = ({ part_number, size, written = String(part_number) }: PartToCheck): void => {
  if (!Number.isInteger(part_number) || part_number < 1 || part_number > MAX_PARTS)
    throw new AppError(
      'bad_request',
      `part_number: expected 1 to ${MAX_PARTS}, got ${written.slice(0, MAX_SHOWN)}`,
    )
  if (size > MAX_PART_BYTES)
    throw new AppError('payload_too_large', `body: expected at most ${MAX_PART_BYTES} bytes, got ${size}`)
}

type Deps = Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'> & { readonly quotas: FileQuota }

interface Content {
  readonly size: number
  readonly content: AsyncIterable<Buffer>
}

type PartRef = UploadRef & { readonly part_number: number }

/**
 * Streams one part of `size` bytes to a pending upload (SPEC.md, Multipart upload). A part with the same number is
 * replaced. Rejects with `bad_request`, `payload_too_large`, `not_found`, `quota_exceeded` or `rate_limit_exceeded`.
 */
export const putPart = (
  deps: Deps,
  { size, content, ...part }: PartRef & Content,
  cause: EnvCause,
): Promise<Part> => receiving(deps, { ...part, size }, cause, ({ store }) => store({ size, content }))

/**
 * Receives a part of unknown size in `file` and then stores it like `putPart`, because the blobs require the size before
 * the first byte. What has arrived already counts. The file does not remain.
 */
export const putSpooledPart = (
  deps: Deps,
  { file, content, ...part }: PartRef & Omit<Content, 'size'> & { readonly file: string },
  cause: EnvCause,
): Promise<Part> =>
  receiving(deps, { ...part, size: 0 }, cause, async ({ cover, store }) => {
    let size = 0
    const covered = async function* () {
      for await (const chunk of content) {
        await cover((size += chunk.length), AHEAD_BYTES)
        yield chunk
      }
    }
    try {
      await writeContent(file, covered())
      return await withContent(file, (spooled) => store({ size, content: spooled }))
    } finally {
      await rm(file, { force: true })
    }
  })

interface Receiving {
  /** Checks a part that has `bytes` so far, and reserves room for it. */
  readonly cover: (bytes: number, ahead?: number) => Promise<void>
  readonly store: (content: Content) => Promise<Part>
}

/**
 * Runs work on a part of a pending upload that has at least `size` bytes. What the part covers of the plan is released
 * afterwards.
 */
const receiving = async (
  { aggregates, blobs, store, quotas }: Deps,
  { part_number, size: least, ...ref }: PartRef & Pick<Content, 'size'>,
  cause: EnvCause,
  work: (part: Receiving) => Promise<Part>,
): Promise<Part> => {
  checkPart({ part_number, size: least })
  const { env_id } = cause
  const known = await pendingUpload({ aggregates, store }, env_id, ref)
  demandRoomForPart(known) // before the part is stored: a stored one without its fact could not be joined
  const { upload, parts } = known
  const { key, blob_upload_id, upload_id } = upload
  const former = parts.get(part_number)?.size ?? 0
  let others = -former
  for (const part of parts.values()) others += part.size
  const room = quotas.roomFor(env_id, { id: `${upload_id}/${part_number}`, bytes: former })
  const cover = async (bytes: number, ahead?: number): Promise<void> => {
    checkPart({ part_number, size: bytes })
    checkFileSize(quotas, env_id, others + bytes)
    await room.cover(bytes, ahead)
  }
  const storePart = async ({ size, content }: Content): Promise<Part> => {
    const digest = createHash('sha256')
    const hashed = async function* () {
      for await (const chunk of content) {
        digest.update(chunk)
        yield chunk
      }
    }
    await aggregates.admitChange(cause, { upload_id, part_number, size, etag: UNKNOWN_ETAG })
    const put = await blobs.putPart(key, blob_upload_id, part_number, hashed(), size)
    const part = { part_number, size, etag: etagOf(digest), blob_etag: put.etag }
    await aggregates.uploads.handle(
      streamOf.upload(upload_id),
      { type: 'AddPart', part, now: clock.iso() },
      cause,
    )
    return part
  }
  try {
    await cover(least)
    return await work({ cover, store: storePart })
  } finally {
    room.release()
  }
}
