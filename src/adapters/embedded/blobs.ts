import { close, createReadStream, type Dirent, open as openCallback } from 'node:fs'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { clock } from '../../clock.ts'
import { DurableNames, makeFolderNow } from '../../disk/durableNames.ts'
import { isMissing, syncNames } from '../../disk/sync.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { BlobInfo, Blobs } from '../../ports/blobs.ts'
import { checkedKey } from '../shared/blobKeys.ts'
import { Sender } from '../shared/sender.ts'
import {
  type BlobFolders,
  FOLDER,
  missingAsNull,
  pathOf as pathIn,
  refused,
  writeSynced,
} from './blobFiles.ts'
import { openUploads } from './blobUploads.ts'
import { Holds } from './heldBlobs.ts'

const openFile = promisify(openCallback)

/** The kernel has written every older change by itself: it does so within a minute, unless it is configured otherwise. */
const WRITTEN_BACK_MS = 3_600_000

/** A folder in `<dir>/tmp` that is there while the blobs are open, and after their process was killed. */
const OPEN = 'open'

/** Closes the file of a stream that was neither read to its end nor destroyed. A collected FileHandle would end the process. */
const abandoned = new FinalizationRegistry<number>((fd) => close(fd))

/**
 * Opens blobs as files under `<dir>/objects`. A put is written in `<dir>/tmp`, synced and renamed; files that a crash
 * leaves there are removed at open. Multipart uploads are kept in `<dir>/uploads`. One process at a time, except those that
 * `onlyRead`: they change nothing.
 * B1: readers see only what is durable. They wait for changes in progress, and a killed process may have left names
 * without a sync: the next open syncs the folders that have changed lately.
 */
export const openBlobs = async ({
  dir,
  onlyRead = false,
}: {
  dir: string
  onlyRead?: boolean
}): Promise<Blobs> => {
  const folders = { root: join(dir, 'objects'), scratch: join(dir, 'tmp'), uploads: join(dir, 'uploads') }
  if (!onlyRead) {
    await prepare(dir, folders).catch((error: unknown) => {
      throw refused(error) // a start waits for room
    })
  }
  const objects = new DurableNames(folders.root)

  const pathOf = (key: string): string => pathIn(folders, checkedKey(key))
  const read = readerOf(folders.root)
  const get: Blobs['get'] = async (key, range) => {
    try {
      return await read.get(key, range)
    } finally {
      await objects.settled(pathOf(key)) // B1
    }
  }
  const list: Blobs['list'] = async function* (prefix) {
    yield* read.list(prefix)
    await objects.settled() // B1: also the removal of a blob that was not found
  }
  const holds = new Holds(folders.scratch, readerOf)

  return {
    backend: 'disk',

    async put(key, content) {
      const path = pathOf(key)
      const file = join(folders.scratch, newId())
      const sender = new Sender(content)
      try {
        const size = await writeSynced(file, sender.read())
        await objects.place(file, path)
        return { key, size }
      } catch (error) {
        await rm(file, { force: true })
        throw sender.failed ? error : refused(error)
      }
    },

    get,

    async head(key) {
      const path = pathOf(key)
      const found = await missingAsNull(stat(path))
      await objects.settled(path) // B1
      return found && { key, size: found.size }
    },

    async remove(key) {
      const path = pathOf(key)
      await objects
        .remove(path, async () => (await holds.take(key, path)) || missingAsNull(rm(path)))
        .catch((error: unknown) => {
          throw refused(error)
        })
    },

    list,

    hold: (keeps) => holds.begin(keeps, { get, list }),

    ...openUploads(folders, objects),

    async close() {
      if (onlyRead) return
      await objects.settled()
      await rm(join(folders.scratch, OPEN), { recursive: true, force: true })
    },
  }
}

const prepare = async (dir: string, folders: BlobFolders): Promise<void> => {
  const wasKilled = (await missingAsNull(stat(join(folders.scratch, OPEN)))) !== null
  if (wasKilled) await syncNames(dir, clock.now() - WRITTEN_BACK_MS) // B1
  await rm(folders.scratch, { recursive: true, force: true })
  for (const folder of Object.values(folders)) makeFolderNow(folder)
  await mkdir(join(folders.scratch, OPEN))
}

/** Reads the blobs below a folder. */
const readerOf = (root: string): Pick<Blobs, 'get' | 'list'> => ({
  async get(key, range) {
    const fd = await openFile(pathIn({ root }, checkedKey(key)), 'r').catch((error: unknown) => {
      if (isMissing(error)) throw new AppError('not_found', `No blob ${key}`, { cause: error })
      throw refused(error)
    })
    const stream = createReadStream('', {
      fd,
      start: range?.from ?? 0,
      ...(range?.to !== undefined && { end: range.to }),
    })
    abandoned.register(stream, fd, stream)
    return stream.once('close', () => abandoned.unregister(stream))
  },

  list: (prefix) => walk(root, '', prefix),
})

/** Yields the blobs whose key begins with `prefix`, ordered by key. `folder` ends in `/`, or is the root. */
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
      const found = await missingAsNull(stat(join(path, key.slice(folder.length)))) // null if it was removed in the meantime
      if (found) yield { key, size: found.size }
    }
  }
}
