import { isoOf } from '../../clock.ts'
import { checkedContentType, checkedPath } from '../../content/fileChecks.ts'
import { contentKey } from '../../content/contentKey.ts'
import type { FileQuota } from '../../content/fileQuota.ts'
import { streamOf } from '../../events/streams.ts'
import type { Upload } from '../../events/upload.ts'
import { newId as freshId } from '../../ids.ts'
import { laterNow } from '../../loops/twoClocks.ts'
import { checkFileQuota } from './checkFileQuota.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { uploadState } from './uploadFor.ts'

/** An upload that is not complete after this time is removed (SPEC.md, Multipart upload). */
export const UPLOAD_EXPIRES_MS = 24 * 3600_000
/** 10,000 parts of this size exceed what any plan allows for a file. */
const PART_BYTES = 16 << 20

/**
 * Begins an upload in parts (SPEC.md, Multipart upload). A repeat with the same id returns the same upload. Any node
 * can continue it, because the log records every part. Rejects with `bad_request`, with `quota_exceeded` when the plan
 * has no room for `expected_size` bytes or allows no further upload in progress, or with `rate_limit_exceeded`.
 */
export const beginUpload = async (
  deps: Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'> & { readonly quotas: FileQuota },
  {
    expected_size,
    run_id,
    ...wanted
  }: { path: unknown; content_type: unknown; expected_size?: number | undefined; run_id: string | null },
  { cause, newId }: Caller,
): Promise<Upload> => {
  const { env_id } = cause
  const path = checkedPath(wanted.path)
  const content_type = checkedContentType(wanted.content_type)
  const upload_id = newId('upload')
  const begun = await uploadState(deps, upload_id)
  if ('upload' in begun) return begun.upload
  if (expected_size !== undefined) await checkFileQuota(deps, env_id, { path, size: expected_size })
  const begins = deps.quotas.admitUpload(env_id, async () => {
    const key = contentKey(env_id, freshId())
    const admitted: Omit<Upload, 'blob_upload_id'> = {
      upload_id,
      path,
      content_type,
      key,
      ...(expected_size !== undefined && { expected_size }),
      part_size: PART_BYTES,
      parts_expected: Math.max(1, Math.ceil((expected_size ?? 0) / PART_BYTES)),
      by_run_id: run_id,
      expires_at: isoOf(laterNow(deps.store) + UPLOAD_EXPIRES_MS),
    }
    await deps.aggregates.admitChange(cause, admitted)
    const upload = { ...admitted, blob_upload_id: await deps.blobs.createUpload(key) }
    const stream = streamOf.upload(upload_id)
    const { events } = await deps.aggregates.uploads.handle(stream, { type: 'BeginUpload', upload }, cause)
    if (events.length > 0) return upload
    await deps.blobs.abortUpload(key, upload.blob_upload_id).catch(() => {}) // the sweep removes what remains
    const first = await uploadState(deps, upload_id)
    return 'upload' in first ? first.upload : upload // a repeat gets a reply also after the upload has ended
  })
  return begins.catch(async (error: unknown) => {
    const state = await uploadState(deps, upload_id) // a repeat counts the upload of the first request
    if ('upload' in state) return state.upload
    throw error
  })
}
