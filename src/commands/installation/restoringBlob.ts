import { text } from 'node:stream/consumers'
import { AppError, isAppError } from '../../errors.ts'
import type { Blobs } from '../../ports/blobs.ts'

/** The blob that marks engines into which a backup is being restored. */
const KEY = 'restoring'

/** The backup that is being restored into these engines; null if there is none. */
export const restoringInto = async (blobs: Pick<Blobs, 'get'>): Promise<string | null> => {
  try {
    return await text(await blobs.get(KEY))
  } catch (error) {
    if (isAppError(error, 'not_found')) return null
    throw error
  }
}

export const markRestoring = async (blobs: Pick<Blobs, 'put'>, backup: string): Promise<void> =>
  void (await blobs.put(KEY, Buffer.from(backup)))

export const unmarkRestoring = (blobs: Pick<Blobs, 'remove'>): Promise<void> => blobs.remove(KEY)

/** Rejects with `bad_request` if a restore into these engines did not complete. */
export const checkRestored = async (blobs: Pick<Blobs, 'get'>): Promise<void> => {
  if ((await restoringInto(blobs)) !== null)
    throw new AppError(
      'bad_request',
      'SVC_BLOBS: the engines contain a restore that did not complete: repeat svc restore',
    )
}
