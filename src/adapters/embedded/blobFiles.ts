import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissing } from '../../disk/sync.ts'
import { AppError, messageOf } from '../../errors.ts'

/** The last character of every folder name. No key contains it, so `a` and `a/b` can be a file and a folder. */
export const FOLDER = '~'

/** The folders of blobs on disk. `scratch` is emptied at open. */
export interface BlobFolders {
  readonly root: string
  readonly scratch: string
  readonly uploads: string
}

export const pathOf = ({ root }: Pick<BlobFolders, 'root'>, key: string): string =>
  join(root, key.replaceAll('/', `${FOLDER}/`))

/** Bytes of one write. As many can be received during the write. */
const WRITTEN_BYTES = 1 << 20
const WRITTEN_CHUNKS = 256

/** Writes and syncs a new file and resolves with its size. Receiving and writing overlap. */
export const writeSynced = async (path: string, bytes: AsyncIterable<Uint8Array>): Promise<number> => {
  const file = await open(path, 'wx')
  let written: Promise<void> = Promise.resolve()
  try {
    let size = 0
    let chunks: Uint8Array[] = []
    let gathered = 0
    const write = async () => {
      await written
      written = writeAll(file, chunks, gathered)
      written.catch(() => {}) // the next write reports it
      chunks = []
      gathered = 0
    }
    for await (const chunk of bytes) {
      chunks.push(chunk)
      size += chunk.length
      gathered += chunk.length
      if (gathered >= WRITTEN_BYTES || chunks.length >= WRITTEN_CHUNKS) await write()
    }
    await write()
    await written
    await file.sync()
    return size
  } finally {
    await written.catch(() => {})
    await file.close()
  }
}

const writeAll = async (file: FileHandle, chunks: readonly Uint8Array[], size: number): Promise<void> => {
  if (size === 0) return
  const { bytesWritten } = await file.writev(chunks)
  if (bytesWritten < size) await file.appendFile(Buffer.concat(chunks).subarray(bytesWritten)) // or throws the reason
}

export const missingAsNull = async <T>(work: Promise<T>): Promise<T | null> =>
  work.catch((error: unknown) => {
    if (isMissing(error)) return null
    throw refused(error)
  })

/** Converts a failure of the disk to an error of the port. */
export const refused = (error: unknown): AppError =>
  error instanceof AppError
    ? error
    : new AppError('unavailable', `The blobs on disk failed: ${messageOf(error)}`, { cause: error })
