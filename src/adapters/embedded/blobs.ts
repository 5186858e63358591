import { close, createReadStream, type Dirent, open as openCallback } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { DurableFolders, makeFolderNow } from '../../disk/durableFolders.ts'
import { isMissing, syncFolder } from '../../disk/sync.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { BlobInfo, Blobs } from '../../ports/blobs.ts'
import { checkedKey } from '../shared/blobKeys.ts'
import { Sender } from '../shared/sender.ts'
import { FOLDER, missingAsNull, pathOf as pathIn, refused, writeSynced } from './blobFiles.ts'
import { openUploads } from './blobUploads.ts'
import { Holds } from './heldBlobs.ts'

const openFile = promisify(openCallback)

/** Closes the file of a stream that was neither read to its end nor destroyed. A collected FileHandle would end the process. */
const abandoned = new FinalizationRegistry<number>((fd) => close(fd))

/**
 * Opens blobs as files under `<dir>/objects`. A put is written in `<dir>/tmp`, synced and renamed; files that a crash
 * leaves there are removed at open. Multipart uploads are kept in `<dir>/uploads`. One process at a time, except those that
 * `onlyRead`: they change nothing.
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
    await rm(folders.scratch, { recursive: true, force: true })
    for (const folder of Object.values(folders)) makeFolderNow(folder)
  }
  const objects = new DurableFolders(folders.root)

  const pathOf = (key: string): string => pathIn(folders, checkedKey(key))
  const { get, list } = readerOf(folders.root)
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
      const found = await missingAsNull(stat(pathOf(key)))
      return found && { key, size: found.size }
    },

    async remove(key) {
      const path = pathOf(key)
      if (!(await holds.take(key, path))) await missingAsNull(rm(path))
      await missingAsNull(syncFolder(dirname(path))) // an erased key must not come back
    },

    list,

    hold: (keeps) => holds.begin(keeps, { get, list }),

    ...openUploads(folders, objects),

    async close() {},
  }
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
