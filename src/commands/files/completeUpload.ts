import { createHash } from 'node:crypto'
import { clock } from '../../clock.ts'
import type { FileQuota } from '../../content/fileQuota.ts'
import { type Arrival, assembled, partsUpTo, revisionsOfSize } from '../../domain/upload.ts'
import { AppError, isAppError } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import type { File } from '../../events/file.ts'
import { streamOf } from '../../events/streams.ts'
import type { Part, Upload } from '../../events/upload.ts'
import { newId } from '../../ids.ts'
import { checkFileSize } from './checkFileQuota.ts'
import { commitFile } from './commitFile.ts'
import type { CommandDeps } from '../deps.ts'
import type { WriteRights } from './demandWrite.ts'
import { discardContent } from './discardContent.ts'
import { fileAt } from './fileAt.ts'
import { fileOfContent } from './fileOfContent.ts'
import {
  type KnownUpload,
  noUpload,
  pendingUpload,
  uploadFor,
  type UploadRef,
  uploadState,
} from './uploadFor.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'> & { readonly quotas: FileQuota }

/**
 * Joins the parts of an upload to a file (SPEC.md, Multipart upload). Of a completion and a cancellation, the first
 * fact wins. Each step can be repeated after a crash. A repeat after completion resolves with the same file, also if it
 * has other content now, and rejects with `not_found` if it was deleted.
 */
export const completeUpload = async (
  deps: Deps,
  { rights, ...ref }: UploadRef & { readonly rights: WriteRights },
  cause: EnvCause,
): Promise<File> => {
  const { env_id } = cause
  const known = await uploadFor(deps, env_id, ref)
  if (known.status !== 'pending') return storeJoined(deps, known, cause, { rights })
  let isFirst = false
  try {
    const joined = await joinParts(deps, env_id, known).catch(async (error: unknown) => {
      if (!isAppError(error, 'bad_request') || !(await recordStored(deps, known, cause))) throw error
      return joinParts(deps, env_id, await pendingUpload(deps, env_id, ref))
    })
    const stream = streamOf.upload(known.upload.upload_id)
    const { events } = await deps.aggregates.uploads.handle(stream, { type: 'JoinParts', ...joined }, cause)
    isFirst = events.length > 0
  } catch (error) {
    if (!isAppError(error, 'not_found') || !(await isCompleted(deps, known.upload))) throw error
  }
  return storeJoined(deps, await uploadFor(deps, env_id, ref), cause, { rights, isFirst })
}

/** Makes joined parts a file. `isFirst`: no earlier attempt can have done it. */
const storeJoined = async (
  deps: Deps,
  joined: KnownUpload,
  cause: EnvCause,
  { rights, isFirst = false }: { rights: WriteRights; isFirst?: boolean },
): Promise<File> => {
  const { env_id } = cause
  const { upload_id, path, key, content_type, by_run_id: run_id } = joined.upload
  if (joined.status === 'completed') return completedFile(deps, env_id, joined.upload)
  const { parts, size } = assembled(joined)
  const before = isFirst ? null : await fileOfContent(deps, env_id, { path, key })
  const content = { file_id: newId(), path, key, size, etag: etagOf(parts), content_type, run_id, rights }
  const file = before ?? (await commitFile(deps, content, cause))
  await deps.aggregates.uploads.handle(streamOf.upload(upload_id), { type: 'CompleteUpload' }, cause)
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

/** Joins the parts. Resolves with what `JoinParts` records of them. */
const joinParts = async (
  deps: Pick<Deps, 'aggregates' | 'blobs' | 'quotas'>,
  env_id: string,
  known: KnownUpload,
): Promise<{ parts: number; parts_revision: number }> => {
  const { blobs, quotas } = deps
  const { upload_id, key, blob_upload_id } = known.upload
  try {
    const { parts, size } = assembled(known)
    checkFileSize(quotas, env_id, size) // its parts were counted when they arrived
    const joined = parts.map(({ part_number, blob_etag }) => ({ part_number, etag: blob_etag }))
    await blobs.completeUpload(key, blob_upload_id, joined)
    return { parts: parts.length, parts_revision: known.arrivals.at(-1)?.revision ?? -1 }
  } catch (error) {
    const mayBeJoined = isAppError(error, 'not_found') || isAppError(error, 'bad_request')
    const content = mayBeJoined ? await blobs.head(key) : null
    if (!content) throw error
    const now = await uploadState(deps, upload_id) // parts may have arrived between the look at `known` and the join
    if (now.status !== 'pending') throw noUpload(upload_id)
    return joinedBefore(now, content.size)
  }
}

/**
 * Two parts of one number that are sent at the same time may be stored in one order, and their facts in the other. The stored
 * ones are recorded once more, so that they are the last. Resolves with whether `known` had others.
 */
const recordStored = async (
  { aggregates, blobs, store }: Pick<Deps, 'aggregates' | 'blobs' | 'store'>,
  known: KnownUpload,
  cause: EnvCause,
): Promise<boolean> => {
  const { upload_id, key, blob_upload_id } = known.upload
  const now = await pendingUpload({ aggregates, store }, cause.env_id, { upload_id })
  let hadOthers = false
  for await (const { part_number, etag } of blobs.listParts(key, blob_upload_id)) {
    if (known.parts.get(part_number)?.blob_etag === etag) continue
    const isStored = ({ part }: Arrival) => part.part_number === part_number && part.blob_etag === etag
    const part = now.arrivals.findLast(isStored)?.part
    if (!part) continue // its fact follows: it is being sent
    hadOthers = true
    if (now.parts.get(part_number)?.blob_etag === etag) continue
    const command = { type: 'AddPart', part, now: clock.iso() } as const
    await aggregates.uploads.handle(streamOf.upload(upload_id), command, cause)
  }
  return hadOthers
}

/** Finds the parts that an earlier attempt joined, although later ones may have arrived since. */
const joinedBefore = (
  { upload: { upload_id }, arrivals }: KnownUpload,
  size: number,
): { parts: number; parts_revision: number } => {
  const [parts_revision, ...others] = revisionsOfSize(arrivals, size)
  if (parts_revision !== undefined && others.length === 0)
    return { parts: partsUpTo(arrivals, parts_revision).size, parts_revision }
  throw new AppError(
    'conflict',
    `A part of upload ${upload_id} arrived while its parts were joined: cancel it and begin a new one`,
  )
}

/** The ETag in S3's form: a hash of the parts' hashes, and the number of parts. */
const etagOf = (parts: readonly Part[]): string => {
  const digest = createHash('sha256')
  for (const { etag } of parts) digest.update(Buffer.from(etag.slice(1, -1), 'hex'))
  return `"${digest.digest('hex')}-${parts.length}"`
}
