import { createHash } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { newId } from '../ids.ts'
import { SCRATCH } from './backupFolder.ts'
import type { Sum } from './manifest.ts'

/** A file that is being written. It gets its name when it is complete and synced. */
export interface NewFile {
  readonly bytes: number
  write(chunk: Uint8Array): Promise<void>
  /** Syncs the file and moves it to the path that `nameOf` returns, relative to the backup. The caller syncs its folder. */
  place(nameOf: (sum: Sum) => string): Promise<Sum & { readonly file: string }>
  discard(): Promise<void>
}

/** Bytes that are gathered for one write. */
const WRITTEN_BYTES = 1 << 20

export const createFile = async (dir: string): Promise<NewFile> => {
  const path = join(dir, SCRATCH, newId())
  const handle = await open(path, 'wx', 0o600)
  const digest = createHash('sha256')
  let bytes = 0
  let gathered: Uint8Array[] = []
  let gatheredBytes = 0
  const flush = async () => {
    if (gatheredBytes > 0) await handle.appendFile(Buffer.concat(gathered))
    gathered = []
    gatheredBytes = 0
  }
  return {
    get bytes() {
      return bytes
    },
    async write(chunk) {
      digest.update(chunk)
      bytes += chunk.length
      gathered.push(chunk)
      gatheredBytes += chunk.length
      if (gatheredBytes >= WRITTEN_BYTES) await flush()
    },
    async place(nameOf) {
      await flush()
      await handle.sync()
      await handle.close()
      const sum = { bytes, sha256: digest.digest('hex') }
      const file = nameOf(sum)
      const target = join(dir, file)
      await mkdir(dirname(target), { recursive: true, mode: 0o700 })
      await rename(path, target)
      return { ...sum, file }
    },
    async discard() {
      await handle.close().catch(() => {})
      await rm(path, { force: true })
    },
  }
}

/** Writes a small file as a whole. */
export const writeWhole = async (
  dir: string,
  text: string,
  nameOf: (sum: Sum) => string,
): Promise<Sum & { readonly file: string }> => {
  const file = await createFile(dir)
  try {
    await file.write(Buffer.from(text))
    return await file.place(nameOf)
  } catch (error) {
    await file.discard()
    throw error
  }
}
