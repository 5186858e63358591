import { closeSync, fsyncSync, openSync } from 'node:fs'
import { type FileHandle, open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { eachOf } from './eachOf.ts'

/** Syncs that run at the same time: the file system writes them together. */
const SYNCS_AT_A_TIME = 8

/** Errors of systems that cannot sync a folder, and do not need it, and of folders that this process may not read. */
const UNSYNCABLE = new Set<unknown>(['EISDIR', 'EPERM', 'EINVAL', 'ENOTSUP', 'EACCES', 'EROFS'])

const codeOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined

export const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT'

/** A part of the path is a file where a folder was expected. */
export const isBelowFile = (error: unknown): boolean => codeOf(error) === 'ENOTDIR'

/** A folder could not be made, because a part of its path is a file. */
export const isFileInPath = (error: unknown): boolean => codeOf(error) === 'EEXIST' || isBelowFile(error)

/** Makes the names in a folder durable. A sync of a file promises only its bytes. */
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

/** `syncFolder` for the start of a process. */
export const syncFolderNow = (path: string): void => {
  try {
    syncFileNow(path)
  } catch (error) {
    if (!UNSYNCABLE.has(codeOf(error))) throw error
  }
}

/** Makes the bytes of a file durable. */
export const syncFileNow = (path: string): void => {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Makes all files and names below a folder durable, so that a rename of the folder cannot survive without them. */
export const syncTree = async (dir: string): Promise<void> => {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  await eachOf(entries, SYNCS_AT_A_TIME, (entry) => {
    const path = join(entry.parentPath, entry.name)
    return entry.isDirectory() ? syncFolder(path) : syncFile(path)
  })
  await syncFolder(dir)
}

/** Makes the names below a folder durable that have changed since a time, milliseconds since 1970. */
export const syncNames = async (dir: string, since: number): Promise<void> => {
  const left = [dir]
  const sync = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { mtimeMs } = await stat(next) // before the look, which finds every later folder
      for (const entry of await readdir(next, { withFileTypes: true }))
        if (entry.isDirectory()) left.push(join(next, entry.name))
      if (mtimeMs >= since) await syncFolder(next)
    }
  }
  while (left.length > 0) await Promise.all(Array.from({ length: SYNCS_AT_A_TIME }, sync))
}

const syncFile = async (path: string): Promise<void> => {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
