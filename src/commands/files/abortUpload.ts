import type { EnvCause } from '../../events/event.ts'
import type { CommandDeps } from '../deps.ts'
import { endUpload } from './endUpload.ts'
import { uploadFor, type UploadRef } from './uploadFor.ts'

/** Cancels a pending upload and removes its parts (SPEC.md, Multipart upload). Rejects with `not_found`. */
export const abortUpload = async (
  deps: Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'>,
  ref: UploadRef,
  cause: EnvCause,
): Promise<void> => {
  const { upload } = await uploadFor(deps, cause.env_id, ref)
  await endUpload(deps, upload, { reason: 'asked', seen: 'pending' }, cause)
}
