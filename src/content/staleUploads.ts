import { clock } from '../clock.ts'
import type { Blobs, PendingUpload } from '../ports/blobs.ts'

/**
 * Aborts uploads that are older than `ageMs` and whose process died; their parts take up space. Uploads for which
 * `isKnown` is true are kept, because clients may still complete them. Resolves with the number of aborted uploads.
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
