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
import { discardContent } from './discardContent.ts'
import { fileAt } from './fileAt.ts'
import { fileOfContent } from './fileOfContent.ts'
import { noUpload, uploadFor, type UploadRef, uploadState } from './uploadFor.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'> & { readonly quotas: FileQuota }

/**
 * Joins the parts of an upload to a file (SPEC.md, Multipart upload). Of a completion and a cancellation, the first
 * fact wins. Each step can be repeated after a crash. A repeat after completion resolves with the same file, also if it
 * has other content now, and rejects with `not_found` if it was deleted.
 */
export const completeUpload = async (deps: Deps, ref: UploadRef, cause: EnvCause): Promise<File> => {
  const { aggregates } = deps
  const { env_id } = cause
  const known = await uploadFor(deps, env_id, ref)
  const { upload_id, path, key, content_type, by_run_id: run_id } = known.upload
  const stream = streamOf.upload(upload_id)
  if (known.status === 'completed') return completedFile(deps, env_id, known.upload)
  const { parts, size } = assembled(known)
  if (known.status === 'pending') {
    checkFileSize(deps.quotas, env_id, size) // its parts were counted when they arrived
    try {
      await joinParts(deps, known.upload, parts, size)
      await aggregates.uploads.handle(stream, { type: 'JoinParts', parts: parts.length }, cause)
    } catch (error) {
      if (!isAppError(error, 'not_found') || !(await isCompleted(deps, known.upload))) throw error
      return completeUpload(deps, ref, cause)
    }
  }
  const before = known.status === 'pending' ? null : await fileOfContent(deps, env_id, { path, key })
  const content = { file_id: newId(), path, key, size, etag: etagOf(parts), content_type, run_id }
  const file = before ?? (await commitFile(deps, content, cause))
  await aggregates.uploads.handle(stream, { type: 'CompleteUpload' }, cause)
  return file
}

/** The file as it was at the completion. Rejects with `not_found` if it was deleted since. */
const completedFile = async (deps: Deps, env_id: string, { upload_id, path, key }: Upload): Promise<File> => {
  const before = await fileOfContent(deps, env_id, { path, key })
  const now = await fileAt(deps, env_id, path)
  if (!before || now?.file_id !== before.file_id) throw noUpload(upload_id)
  return before
}

/** Whether another caller completed the upload while this one joined its parts, or cancelled it. */
const isCompleted = async (deps: Deps, { upload_id, key }: Upload): Promise<boolean> => {
  const { status } = await uploadState(deps, upload_id)
  if (status === 'aborted') await discardContent(deps.blobs, key) // the parts may have been joined first
  return status === 'joined' || status === 'completed'
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
