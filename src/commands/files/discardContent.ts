import type { Blobs } from '../../ports/blobs.ts'

/** Removes content without a file. Never rejects: after a failure, the sweep removes the content. */
export const discardContent = (blobs: Pick<Blobs, 'remove'>, key: string): Promise<void> =>
  blobs.remove(key).catch(() => {})
