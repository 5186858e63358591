import { readConfig } from '../../src/process/config.ts'
import { openBlobs } from '../../src/process/engines.ts'
import type { Blobs } from '../../src/ports/blobs.ts'
import { installation } from './installation.ts'

/** Opens the blobs of the service with this data directory, embedded or in S3, to look at them: the service may be running. */
export const withBlobs = async <T>(dataDir: string, use: (blobs: Blobs) => Promise<T>): Promise<T> => {
  const blobs = await openBlobs(readConfig(installation(dataDir)), { onlyRead: true })
  try {
    return await use(blobs)
  } finally {
    await blobs.close()
  }
}
