import { clock } from '../clock.ts'
import type { Blobs, PendingUpload } from '../ports/blobs.ts'

/**
 * Aborts the uploads begun more than `ageMs` ago that nobody will end: those of processes that died, whose parts take
 * room and cannot be seen. `isKnown` keeps the ones that clients may still complete. Gives how many it aborted.
 */
export const abortStaleUploads = async (
  blobs: Blobs,
  { ageMs, isKnown }: { ageMs: number; isKnown: (upload: PendingUpload) => boolean | Promise<boolean> },
): Promise<number> => {
  const before = clock.now() - ageMs
  let aborted = 0
  for await (const upload of blobs.listUploads()) {
    if (Date.parse(upload.begun_at) > before || (await isKnown(upload))) continue
    await blobs.abortUpload(upload.key, upload.upload_id)
    aborted++
  }
  return aborted
}
