import { createHash } from 'node:crypto'
import type { FileQuota } from '../../content/fileQuota.ts'
import { assembled } from '../../domain/upload.ts'
import { isAppError } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import type { File } from '../../events/file.ts'
import { streamOf } from '../../events/streams.ts'
import type { Part, Upload } from '../../events/upload.ts'
import { newId } from '../../ids.ts'
import { checkFileSize } from './checkFileQuota.ts'
import { commitFile } from './commitFile.ts'
import type { CommandDeps } from '../deps.ts'
import { fileAt } from './fileAt.ts'
import { noUpload, uploadFor, type UploadRef } from './uploadFor.ts'

/**
 * Joins the parts of an upload to a file (SPEC.md, Multipart upload). The three steps (join, commit, end the upload)
 * can each be repeated after a crash. A repeat after completion resolves with the file at the path.
 */
export const completeUpload = async (
  deps: Pick<CommandDeps, 'aggregates' | 'blobs'> & { readonly quotas: FileQuota },
  ref: UploadRef,
  cause: EnvCause,
): Promise<File> => {
  const { env_id } = cause
  const known = await uploadFor(deps, env_id, ref)
  const { upload_id, path, key, content_type, by_run_id: run_id } = known.upload
  if (known.status === 'completed') {
    const file = await fileAt(deps, env_id, path)
    if (!file) throw noUpload(upload_id)
    return file
  }
  const { parts, size } = assembled(known)
  checkFileSize(deps.quotas, env_id, size) // its parts were counted when they arrived
  await joinParts(deps, known.upload, parts, size)
  const content = { file_id: newId(), path, key, size, etag: etagOf(parts), content_type, run_id }
  const file = await commitFile(deps, content, cause)
  await deps.aggregates.uploads.handle(streamOf.upload(upload_id), { type: 'CompleteUpload' }, cause)
  return file
}

const joinParts = async (
  { blobs }: Pick<CommandDeps, 'blobs'>,
  { key, blob_upload_id }: Upload,
  parts: readonly Part[],
  size: number,
): Promise<void> => {
  try {
    await blobs.completeUpload(
      key,
      blob_upload_id,
      parts.map(({ part_number, blob_etag }) => ({ part_number, etag: blob_etag })),
    )
  } catch (error) {
    // An earlier attempt may have joined them.
    if (!isAppError(error, 'not_found') || (await blobs.head(key))?.size !== size) throw error
  }
}

/** The ETag in S3's form: a hash of the parts' hashes, and the number of parts. */
const etagOf = (parts: readonly Part[]): string => {
  const digest = createHash('sha256')
  for (const { etag } of parts) digest.update(Buffer.from(etag.slice(1, -1), 'hex'))
  return `"${digest.digest('hex')}-${parts.length}"`
}
