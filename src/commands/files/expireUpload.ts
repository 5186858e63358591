import type { CommandDeps } from '../deps.ts'
import { endUpload } from './endUpload.ts'
import { uploadState } from './uploadFor.ts'

/** Ends an upload that was not completed in time. Resolves with true if it was still pending. */
export const expireUpload = async (
  deps: Pick<CommandDeps, 'aggregates' | 'blobs'>,
  { env_id, upload_id }: { env_id: string; upload_id: string },
): Promise<boolean> => {
  const state = await uploadState(deps, upload_id)
  if (state.status !== 'pending') return false
  await endUpload(deps, state.upload, 'expired', { env_id, correlation_id: upload_id })
  return true
}
