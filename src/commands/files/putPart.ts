import { createHash } from 'node:crypto'
import { clock } from '../../clock.ts'
import type { FileQuota } from '../../content/fileQuota.ts'
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

/** Throws `bad_request` or `payload_too_large` for a part that is invalid in every upload. */
export const checkPart = ({ part_number, size }: { part_number: number; size: number }): void => {
  if (!Number.isInteger(part_number) || part_number < 1 || part_number > MAX_PARTS)
    throw new AppError('bad_request', `part_number: expected 1 to ${MAX_PARTS}, got ${part_number}`)
  if (size > MAX_PART_BYTES)
    throw new AppError('payload_too_large', `body: expected at most ${MAX_PART_BYTES} bytes, got ${size}`)
}

/**
 * Streams one part of `size` bytes to a pending upload (SPEC.md, Multipart upload). A part with the same number is
 * replaced. Rejects with `bad_request`, `payload_too_large`, `not_found` or `quota_exceeded`.
 */
export const putPart = async (
  deps: Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'> & { readonly quotas: FileQuota },
  {
    part_number,
    size,
    content,
    ...ref
  }: UploadRef & { part_number: number; size: number; content: AsyncIterable<Buffer> },
  cause: EnvCause,
): Promise<Part> => {
  checkPart({ part_number, size })
  const { env_id } = cause
  const { upload, parts } = await pendingUpload(deps, env_id, ref)
  let whole = size - (parts.get(part_number)?.size ?? 0)
  for (const part of parts.values()) whole += part.size
  checkFileSize(deps.quotas, env_id, whole)
  const digest = createHash('sha256')
  const hashed = async function* () {
    for await (const chunk of content) {
      digest.update(chunk)
      yield chunk
    }
  }
  const { key, blob_upload_id, upload_id } = upload
  const former = parts.get(part_number)?.size ?? 0
  const room = deps.quotas.roomFor(env_id, { id: `${upload_id}/${part_number}`, bytes: former })
  try {
    await room.cover(size)
    const put = await deps.blobs.putPart(key, blob_upload_id, part_number, hashed(), size)
    const part = { part_number, size, etag: `"${digest.digest('hex')}"`, blob_etag: put.etag }
    await deps.aggregates.uploads.handle(
      streamOf.upload(upload_id),
      { type: 'AddPart', part, now: clock.iso() },
      cause,
    )
    return part
  } finally {
    room.release()
  }
}
