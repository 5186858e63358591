import { isAppError } from '../../errors.ts'
import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import type { Upload } from '../../events/upload.ts'
import type { CommandDeps } from '../deps.ts'
import { earlierNow } from '../../loops/twoClocks.ts'
import { endUpload } from './endUpload.ts'
import { fileOfContent } from './fileOfContent.ts'
import { uploadState } from './uploadFor.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'>

/** A completion that has not ended this long after the upload expired has lost its node. */
const COMPLETING_MS = 3600_000

/** Ends an upload that was not completed in time. Resolves with true if its content did not become a file. */
export const expireUpload = async (
  deps: Deps,
  { env_id, upload_id }: { env_id: string; upload_id: string },
): Promise<boolean> => {
  const state = await uploadState(deps, upload_id)
  if (state.status !== 'pending' && state.status !== 'joined') return false
  const { upload, status: seen } = state
  if (seen === 'joined') {
    if (Date.parse(upload.expires_at) + COMPLETING_MS > earlierNow(deps.store)) return false
    if (await isFile(deps, env_id, upload)) return false
  }
  try {
    await endUpload(deps, upload, { reason: 'expired', seen }, bySweep(env_id, upload_id))
  } catch (error) {
    if (isAppError(error, 'not_found')) return false // its client has completed or cancelled it meanwhile
    throw error
  }
  return true
}

const bySweep = (env_id: string, upload_id: string) => ({
  env_id,
  correlation_id: upload_id,
  ...bySystem('uploads'),
})

/** Completes an upload whose node died after the content had become a file. */
const isFile = async (
  deps: Deps,
  env_id: string,
  { upload_id, path, key }: Pick<Upload, 'upload_id' | 'path' | 'key'>,
): Promise<boolean> => {
  if (!(await fileOfContent(deps, env_id, { path, key }))) return false
  const cause = bySweep(env_id, upload_id)
  await deps.aggregates.uploads.handle(streamOf.upload(upload_id), { type: 'CompleteUpload' }, cause)
  return true
}
