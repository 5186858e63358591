import type { OnProgress } from './makeBackup.ts'
import { DamagedFile, openBackup } from './readBackup.ts'
import type { Manifest } from './manifest.ts'

export interface Verified {
  readonly manifest: Manifest
  /** One sentence for each damaged file. */
  readonly problems: readonly string[]
}

/** Reads the whole backup and reports every damaged file. Rejects with `bad_request` if the manifest is unusable. */
export const verifyBackup = async (dir: string, onProgress: OnProgress): Promise<Verified> => {
  const backup = openBackup(dir)
  const { manifest } = backup
  const problems: string[] = []
  const noting = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof DamagedFile)) throw error
      problems.push(error.message)
      return undefined
    }
  }
  for (const segment of manifest.segments) {
    await noting(() => readAll(backup.rows(segment)))
    onProgress({ what: 'events', done: segment.last, total: manifest.position })
  }
  await noting(() => backup.consumers())
  const blobs = (await noting(() => backup.blobs())) ?? []
  const read = new Set<string>()
  let done = 0
  for (const blob of blobs) {
    if (!read.has(blob.sha256)) await noting(() => readAll(backup.content(blob)))
    read.add(blob.sha256) // equal blobs share a file
    onProgress({ what: 'blobs', done: ++done, total: blobs.length })
  }
  return { manifest, problems }
}

const readAll = async (parts: AsyncIterable<unknown>): Promise<void> => {
  for await (const _ of parts);
}
