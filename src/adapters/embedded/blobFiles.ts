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
