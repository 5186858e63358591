import { createReadStream, createWriteStream, type Dirent } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AppError, messageOf } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { BlobInfo, Blobs } from '../../ports/blobs.ts'

const KEY = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*$/

/** Blobs as files under `dir`. A put is written beside, synced and renamed; what a crash leaves beside is swept here. */
export const openBlobs = async ({ dir }: { dir: string }): Promise<Blobs> => {
  const root = join(dir, 'objects')
  const scratch = join(dir, 'tmp')
  await rm(scratch, { recursive: true, force: true })
  await mkdir(root, { recursive: true })
  await mkdir(scratch, { recursive: true })

  const pathOf = (key: string): string => {
    if (key.length > 900 || !KEY.test(key)) {
      throw new AppError('bad_request', `Expected a blob key of segments [A-Za-z0-9._-], got ${JSON.stringify(key.slice(0, 80))}`)
    }
    return join(root, key)
  }

  return {
    backend: 'disk',

    async put(key, content) {
      const path = pathOf(key)
      const part = join(scratch, newId())
      try {
        await pipeline(content instanceof Uint8Array ? Readable.from([content]) : content, createWriteStream(part, { flush: true }))
        const { size } = await stat(part)
        await mkdir(dirname(path), { recursive: true })
        await rename(part, path)
        await syncFolder(dirname(path))
        return { key, size }
      } catch (error) {
        await rm(part, { force: true })
        throw refused(error)
      }
    },

    async get(key, range) {
      const file = await open(pathOf(key)).catch((error: unknown) => {
        throw refused(error, key)
      })
      return createReadStream('', { fd: file, ...(range && { start: range.from, ...(range.to !== undefined && { end: range.to }) }) })
    },

    async head(key) {
      const found = await stat(pathOf(key)).catch((error: NodeJS.ErrnoException) => {
        if (isMissing(error)) return null
        throw refused(error)
      })
      return found?.isFile() ? { key, size: found.size } : null
    },

    async remove(key) {
      await rm(pathOf(key), { force: true }).catch((error: NodeJS.ErrnoException) => {
        if (!isMissing(error)) throw refused(error)
      })
    },

    list: (prefix) => walk(root, '', prefix),

    async close() {},
  }
}

/** Files whose key begins with `prefix`, in the order of their keys. */
async function* walk(root: string, folder: string, prefix: string): AsyncGenerator<BlobInfo> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (isMissing(error)) return [] as Dirent[]
    throw refused(error)
  })
  const keyOf = (entry: Dirent) => `${folder}${entry.name}${entry.isDirectory() ? '/' : ''}`
  for (const entry of entries.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
    const key = keyOf(entry)
    if (!key.startsWith(prefix) && !prefix.startsWith(key)) continue
    if (entry.isDirectory()) yield* walk(root, key, prefix)
    else if (key.startsWith(prefix)) {
      const found = await stat(join(root, key)).catch(() => null)
      if (found) yield { key, size: found.size }
    }
  }
}

/** Makes a rename durable. Systems that cannot sync a folder need not. */
const syncFolder = async (path: string): Promise<void> => {
  const folder = await open(path).catch(() => null)
  try {
    await folder?.sync().catch(() => {})
  } finally {
    await folder?.close()
  }
}

const isMissing = (error: NodeJS.ErrnoException): boolean => error.code === 'ENOENT' || error.code === 'ENOTDIR'

const refused = (error: unknown, key?: string): unknown => {
  if (error instanceof AppError) return error
  const { code } = error as NodeJS.ErrnoException
  if (isMissing(error as NodeJS.ErrnoException)) return new AppError('not_found', `No blob ${key ?? ''}`, { cause: error })
  return code === undefined ? error : new AppError('unavailable', `The blobs on disk refused: ${messageOf(error)}`, { cause: error })
}
