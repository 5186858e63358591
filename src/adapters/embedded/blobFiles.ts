import { type FileHandle, mkdir, open, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AppError, messageOf } from '../../errors.ts'

/** Ends the name of every folder. No key contains it, so `a` and `a/b` are a file and a folder side by side. */
export const FOLDER = '~'

/** Where blobs lie on disk. What is in `scratch` is swept at open. */
export interface BlobFolders {
  readonly root: string
  readonly scratch: string
  readonly uploads: string
}

export const pathOf = ({ root }: BlobFolders, key: string): string =>
  join(root, key.replaceAll('/', `${FOLDER}/`))

/** Bytes that are written at once; meanwhile as many come. */
const WRITTEN_BYTES = 1 << 20
const WRITTEN_CHUNKS = 256

/** Writes a new file; whole and synced when it resolves with the size. The sender and the disk work at the same time. */
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
      written.catch(() => {}) // told by the next one
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
  if (bytesWritten < size) await file.appendFile(Buffer.concat(chunks).subarray(bytesWritten)) // or tells why
}

/** Gives a whole, synced file of `scratch` its place; durable when it resolves. */
export const place = async (file: string, path: string): Promise<void> => {
  await makeFolder(dirname(path))
  await rename(file, path)
  await syncFolder(dirname(path))
}

/** Makes a folder and those above it, durably: a new folder is an entry of the one that holds it. */
const makeFolder = async (path: string): Promise<void> => {
  const first = await mkdir(path, { recursive: true })
  for (let made = path; first !== undefined && made.length >= first.length; made = dirname(made)) {
    await syncFolder(dirname(made))
  }
}

/** Makes what happened to a folder's entries durable. Systems that cannot sync a folder need not. */
export const syncFolder = async (path: string): Promise<void> => {
  let folder: FileHandle | undefined
  try {
    folder = await open(path)
    await folder.sync()
  } catch (error) {
    if (!UNSYNCABLE.has(codeOf(error))) throw error
  } finally {
    await folder?.close()
  }
}

const UNSYNCABLE = new Set<unknown>(['EISDIR', 'EPERM', 'EINVAL', 'ENOTSUP'])

const codeOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined

export const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT'

export const missingAsNull = async <T>(work: Promise<T>): Promise<T | null> =>
  work.catch((error: unknown) => {
    if (isMissing(error)) return null
    throw refused(error)
  })

/** Any failure of the disk as the port's error; what is one already stays. */
export const refused = (error: unknown): AppError =>
  error instanceof AppError
    ? error
    : new AppError('unavailable', `The blobs on disk refused: ${messageOf(error)}`, { cause: error })
