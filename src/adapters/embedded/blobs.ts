import { createWriteStream, type Dirent } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AppError, messageOf } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { BlobInfo, Blobs } from '../../ports/blobs.ts'

const SEGMENT = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,250}$/
const MAX_KEY_LENGTH = 900

/** Ends the name of every folder. No key contains it, so `a` and `a/b` are a file and a folder side by side. */
const FOLDER = '~'

/**
 * Blobs as files under `<dir>/objects`. A put is written in `<dir>/tmp`, synced and renamed; what a crash
 * leaves there is swept here. One process at a time.
 */
export const openBlobs = async ({ dir }: { dir: string }): Promise<Blobs> => {
  const root = join(dir, 'objects')
  const scratch = join(dir, 'tmp')
  await rm(scratch, { recursive: true, force: true })
  await mkdir(root, { recursive: true })
  await mkdir(scratch, { recursive: true })

  const pathOf = (key: string): string => join(root, checked(key).replaceAll('/', `${FOLDER}/`))

  return {
    backend: 'disk',

    async put(key, content) {
      const path = pathOf(key)
      const part = join(scratch, newId())
      const sender = { failed: false }
      try {
        await pipeline(chunksOf(content, sender), createWriteStream(part, { flush: true }))
        const { size } = await stat(part)
        await makeFolder(dirname(path))
        await rename(part, path)
        await syncFolder(dirname(path))
        return { key, size }
      } catch (error) {
        await rm(part, { force: true })
        throw sender.failed ? error : refused(error) // the sender's failure is not ours to name
      }
    },

    async get(key, { from = 0, to } = { from: 0 }) {
      const file = await open(pathOf(key)).catch((error: unknown) => {
        throw refused(error, key)
      })
      return file.createReadStream({ start: from, ...(to !== undefined && { end: to }) })
    },

    async head(key) {
      const found = await missingAsNull(stat(pathOf(key)))
      return found && { key, size: found.size }
    },

    async remove(key) {
      await missingAsNull(rm(pathOf(key)))
    },

    list: (prefix) => walk(root, '', prefix),

    async close() {},
  }
}

async function* chunksOf(
  content: Readable | Uint8Array,
  sender: { failed: boolean },
): AsyncGenerator<unknown> {
  try {
    if (content instanceof Uint8Array) yield content
    else yield* content
  } catch (error) {
    sender.failed = true
    throw error
  }
}

const checked = (key: string): string => {
  if (key.length <= MAX_KEY_LENGTH && key.split('/').every((segment) => SEGMENT.test(segment))) return key
  throw new AppError(
    'bad_request',
    `Expected a blob key of segments [A-Za-z0-9._-], got ${JSON.stringify(key.slice(0, 80))}`,
  )
}

/** Blobs whose key begins with `prefix`, in the order of their keys. `folder` ends in `/`, or is the root. */
async function* walk(root: string, folder: string, prefix: string): AsyncGenerator<BlobInfo> {
  const path = join(root, folder.replaceAll('/', `${FOLDER}/`))
  const entries = (await missingAsNull<Dirent[]>(readdir(path, { withFileTypes: true }))) ?? ([] as Dirent[])
  const keys = entries.map((entry) =>
    entry.isDirectory() ? `${folder}${entry.name.slice(0, -1)}/` : `${folder}${entry.name}`,
  )
  for (const key of keys.sort()) {
    if (!key.startsWith(prefix) && !prefix.startsWith(key)) continue
    if (key.endsWith('/')) yield* walk(root, key, prefix)
    else if (key.startsWith(prefix)) {
      const found = await missingAsNull(stat(join(path, key.slice(folder.length)))) // removed meanwhile?
      if (found) yield { key, size: found.size }
    }
  }
}

/** Makes a folder and those above it, durably: a new folder is an entry of the one that holds it. */
const makeFolder = async (path: string): Promise<void> => {
  const first = await mkdir(path, { recursive: true })
  for (let made = path; first !== undefined && made.length >= first.length; made = dirname(made)) {
    await syncFolder(dirname(made))
  }
}

/** Makes what happened to a folder's entries durable. Systems that cannot sync a folder need not. */
const syncFolder = async (path: string): Promise<void> => {
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

const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT'

const missingAsNull = async <T>(work: Promise<T>): Promise<T | null> =>
  work.catch((error: unknown) => {
    if (isMissing(error)) return null
    throw refused(error)
  })

const refused = (error: unknown, key?: string): AppError =>
  key !== undefined && isMissing(error)
    ? new AppError('not_found', `No blob ${key}`, { cause: error })
    : new AppError('unavailable', `The blobs on disk refused: ${messageOf(error)}`, { cause: error })
