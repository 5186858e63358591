import { createHash } from 'node:crypto'
import { clock } from '../../clock.ts'
import { checkedContentType, checkedPath } from '../../content/fileChecks.ts'
import { contentKey, MAX_STORING_MS } from '../../content/contentKey.ts'
import { etagOf, UNKNOWN_ETAG } from '../../content/etag.ts'
import { AHEAD_BYTES, type FileQuota } from '../../content/fileQuota.ts'
import { AppError, isAppError } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import type { File } from '../../events/file.ts'
import { newId } from '../../ids.ts'
import { beyondPlan } from './checkFileQuota.ts'
import { commitFile } from './commitFile.ts'
import type { CommandDeps } from '../deps.ts'
import { demandAction, type WriteRights } from './demandWrite.ts'
import { discardContent } from './discardContent.ts'
import { fileAt } from './fileAt.ts'

export interface FileToStore {
  readonly path: unknown
  readonly content_type: unknown
  /** The run whose code writes the file; null for a client. */
  readonly run_id: string | null
  readonly rights: WriteRights
  /** Announced size in bytes; null when unknown. */
  readonly announced: number | null
  /** Maximum size in bytes; the plan may allow less. */
  readonly maxBytes?: number
  /** Called when the path, the rights and the announced size are accepted. */
  readonly content: () => AsyncIterable<Buffer>
}

/**
 * Streams content to a path (SPEC.md, Files). Rejects with `bad_request`, `forbidden`, `payload_too_large`,
 * `quota_exceeded`, `rate_limit_exceeded` or `request_timeout`; then no content is kept.
 */
export const storeFile = async (
  deps: Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'> & { readonly quotas: FileQuota },
  { run_id, rights, announced, maxBytes = Infinity, content, ...wanted }: FileToStore,
  cause: EnvCause,
): Promise<File> => {
  const { aggregates, blobs, quotas } = deps
  const { env_id } = cause
  const path = checkedPath(wanted.path)
  const content_type = checkedContentType(wanted.content_type)
  const former = await fileAt(deps, env_id, path)
  demandAction(rights, path, former ? 'update' : 'create') // spares the content of a refused writer; the append decides
  const allowed = quotas.maxFileBytes(env_id)
  const most = Math.min(maxBytes, allowed)
  const tooLarge = (got: string) =>
    allowed < maxBytes
      ? beyondPlan(allowed, got)
      : new AppError('payload_too_large', `body: expected at most ${most} bytes, got ${got}`)
  if (announced !== null && announced > most) throw tooLarge(String(announced))
  const room = quotas.roomFor(env_id, { id: path, bytes: former?.size ?? 0 })

  const began = clock.monotonic()
  const digest = createHash('sha256')
  const measured = async function* () {
    let bytes = 0
    for await (const chunk of content()) {
      if ((bytes += chunk.length) > most) throw tooLarge('more')
      await room.cover(bytes, AHEAD_BYTES)
      digest.update(chunk)
      yield chunk
    }
  }
  try {
    if (announced !== null) await room.cover(announced)
    const key = contentKey(env_id, newId())
    const file_id = newId()
    const expected = { file_id, path, key, size: announced ?? 0, etag: UNKNOWN_ETAG, content_type, run_id }
    await aggregates.admitChange(cause, expected)
    const { size } = await blobs.put(key, measured())
    if (clock.monotonic() - began > MAX_STORING_MS) {
      await discardContent(blobs, key)
      throw new AppError('request_timeout', `body: expected it within ${MAX_STORING_MS} ms`)
    }
    const stored = { ...expected, size, etag: etagOf(digest) }
    return await commitFile(deps, { ...stored, rights }, cause).catch(async (error: unknown) => {
      const isRefused = isAppError(error) && error.status < 500 // after any other error the fact may have been stored
      if (isRefused) await discardContent(blobs, key)
      throw error
    })
  } finally {
    room.release()
  }
}
