import { text } from 'node:stream/consumers'
import { isAppError } from '../../errors.ts'
import type { Blobs } from '../../ports/blobs.ts'
import { ROOT_KEYS } from '../../secrets/wrappedKeys.ts'

/** The blob that names the log to which all blobs belong. */
const KEY = 'log-id'

/** Null in blobs that are new, or of a version that did not note the log. */
export const blobsLogId = async (blobs: Blobs): Promise<string | null> => {
  try {
    return await text(await blobs.get(KEY))
  } catch (error) {
    if (isAppError(error, 'not_found')) return null
    throw error
  }
}

export const assignBlobs = async (blobs: Blobs, log_id: string): Promise<void> =>
  void (await blobs.put(KEY, Buffer.from(log_id)))

/** Whether there is a blob that a founded log has stored. A first start that was interrupted leaves a root key. */
export const isUsed = async (blobs: Blobs): Promise<boolean> => {
  for await (const { key } of blobs.list('')) if (key !== KEY && !key.startsWith(ROOT_KEYS)) return true
  return false
}
