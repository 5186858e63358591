import type { Blobs } from '../../ports/blobs.ts'

/** Removes content that no file has. The sweep removes what cannot be removed now, so a failure is no error. */
export const discardContent = (blobs: Pick<Blobs, 'remove'>, key: string): Promise<void> =>
  blobs.remove(key).catch(() => {})
