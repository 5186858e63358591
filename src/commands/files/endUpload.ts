import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { Upload } from '../../events/upload.ts'
import type { CommandDeps } from '../deps.ts'
import { discardContent } from './discardContent.ts'

/**
 * Ends an upload and removes its parts, and its content unless the completion has recorded that they are joined: then a repeat of it
 * may make the content a file at this moment. The sweep removes what remains.
 */
export const endUpload = async (
  { aggregates, blobs }: Pick<CommandDeps, 'aggregates' | 'blobs'>,
  { upload_id, key, blob_upload_id }: Pick<Upload, 'upload_id' | 'key' | 'blob_upload_id'>,
  how: { reason: 'asked' | 'expired'; seen: 'pending' | 'joined' },
  cause: EnvCause,
): Promise<void> => {
  await aggregates.uploads.handle(streamOf.upload(upload_id), { type: 'AbortUpload', ...how }, cause)
  await blobs.abortUpload(key, blob_upload_id).catch(() => {})
  if (how.seen === 'pending') await discardContent(blobs, key)
}
