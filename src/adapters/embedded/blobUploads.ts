import { createHash } from 'node:crypto'
import { copyFile, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { clock } from '../../clock.ts'
import type { DurableNames } from '../../disk/durableNames.ts'
import { isMissing, syncFolder } from '../../disk/sync.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { Turns } from '../../loops/turns.ts'
import { MIN_PART_BYTES, type PendingUpload, type UploadedPart, type Uploads } from '../../ports/blobs.ts'
import { badPart, checkedKey, checkedPartNumber, checkedParts, sizedBytes } from '../shared/blobKeys.ts'
import { Sender } from '../shared/sender.ts'
import { type BlobFolders, missingAsNull, pathOf, refused, writeSynced } from './blobFiles.ts'

const ABOUT = 'upload.json'
const UPLOAD_ID = /^[0-9a-f-]{36}$/
const ETAG = /^[0-9a-f]{64}$/

/**
 * An upload is a folder with `upload.json` and a file `<number>-<etag>` for each part, whose etag is its SHA-256. The
 * folder is created and removed by a rename, so it is never incomplete.
 */
export const openUploads = (folders: BlobFolders, objects: DurableNames): Uploads => {
  const { scratch, uploads } = folders
  // Only one completion of an upload may place its blob: the others could join other parts.
  const completions = new Turns()
  // A part removes the files that it replaces: two at a time would keep both of theirs, and only one is counted.
  const placements = new Turns()

  /** Returns the folder of an upload of this key. Throws `not_found` if there is none. */
  const folderOf = async (key: string, uploadId: string): Promise<string> => {
    checkedKey(key)
    const about = await aboutOf(uploads, uploadId)
    if (about?.key !== key) throw new AppError('not_found', `No such upload of blob ${key}`)
    return join(uploads, uploadId)
  }

  const removeUpload = async (uploadId: string): Promise<void> => {
    const gone = join(scratch, newId())
    if ((await missingAsNull(rename(join(uploads, uploadId), gone))) === null) return
    await syncFolder(uploads)
    await rm(gone, { recursive: true, force: true })
  }

  const joinParts: Uploads['completeUpload'] = async (key, uploadId, parts) => {
    const folder = await folderOf(key, uploadId)
    const files = await filesOf(folder, checkedParts(parts)).catch(async (error: unknown) => {
      await folderOf(key, uploadId) // throws if the upload has ended meanwhile: its parts are not wrong
      throw error
    })
    const whole = join(scratch, newId())
    try {
      const size = await concatenate(files, whole)
      await objects.place(whole, pathOf(folders, key))
      await removeUpload(uploadId)
      return { key, size }
    } catch (error) {
      if (!isMissing(error)) throw refused(error)
      await folderOf(key, uploadId) // throws if the upload was aborted
      throw new AppError('bad_request', 'Expected unchanged parts, got one that was uploaded again')
    } finally {
      await rm(whole, { force: true })
    }
  }

  return {
    async createUpload(key) {
      const uploadId = newId()
      const folder = join(scratch, uploadId)
      const about = JSON.stringify({ key: checkedKey(key), begun_at: clock.iso() })
      try {
        await mkdir(folder)
        await writeFile(join(folder, ABOUT), about, { flush: true })
        await syncFolder(folder)
        await rename(folder, join(uploads, uploadId))
        await syncFolder(uploads)
        return uploadId
      } catch (error) {
        await rm(folder, { recursive: true, force: true }).catch(() => {}) // else the next start removes it
        throw refused(error)
      }
    },

    async putPart(key, uploadId, partNumber, content, size) {
      const sender = new Sender(content)
      const file = join(scratch, newId())
      try {
        const folder = await folderOf(key, uploadId)
        const prefix = `${checkedPartNumber(partNumber)}-`
        const digest = createHash('sha256')
        await writeSynced(file, hashed(sizedBytes(sender.read(), size), digest))
        const etag = digest.digest('hex')
        await placements.run(uploadId, () => placePart(file, folder, prefix, etag))
        return { part_number: partNumber, etag }
      } catch (error) {
        if (sender.failed) throw error
        if (isMissing(error))
          throw new AppError('not_found', `The upload of blob ${key} has ended in the meantime`)
        throw refused(error)
      } finally {
        sender.stop()
        await rm(file, { force: true })
      }
    },

    async completeUpload(key, uploadId, parts) {
      return completions.run(uploadId, () => joinParts(key, uploadId, parts))
    },

    async *listParts(key, uploadId) {
      const folder = await folderOf(key, uploadId)
      for (const name of (await missingAsNull(readdir(folder))) ?? []) {
        const [, number, etag = ''] = /^(\d+)-([0-9a-f]{64})$/.exec(name) ?? []
        if (number !== undefined) yield { part_number: Number(number), etag }
      }
    },

    async abortUpload(key, uploadId) {
      const { key: own } = (await aboutOf(uploads, uploadId)) ?? { key: checkedKey(key) }
      if (own === checkedKey(key) && UPLOAD_ID.test(uploadId)) await removeUpload(uploadId) // also a damaged one
    },

    async *listUploads() {
      for (const uploadId of (await missingAsNull(readdir(uploads))) ?? []) {
        const about = await aboutOf(uploads, uploadId)
        if (about) yield { ...about, upload_id: uploadId }
      }
    },
  }
}

/** Moves a part into the folder of its upload, in place of the parts of its number. */
const placePart = async (file: string, folder: string, prefix: string, etag: string): Promise<void> => {
  const replaced = (await readdir(folder)).filter((name) => name.startsWith(prefix))
  await rename(file, join(folder, prefix + etag))
  await syncFolder(folder) // before the removal of the replaced part: a power cut must not lose both
  for (const name of replaced) if (name !== prefix + etag) await rm(join(folder, name), { force: true })
}

type About = Omit<PendingUpload, 'upload_id'>

/** Null for an upload that does not exist, and for one that is damaged: it must not keep the sweep from all others. */
const aboutOf = async (uploads: string, uploadId: string): Promise<About | null> => {
  if (!UPLOAD_ID.test(uploadId)) return null
  const text = await missingAsNull(readFile(join(uploads, uploadId, ABOUT), 'utf8'))
  try {
    return text === null ? null : (JSON.parse(text) as About)
  } catch {
    return null
  }
}

async function* hashed(
  bytes: AsyncIterable<Uint8Array>,
  digest: { update(chunk: Uint8Array): unknown },
): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    digest.update(chunk)
    yield chunk
  }
}

const filesOf = async (folder: string, parts: readonly UploadedPart[]): Promise<string[]> => {
  const files: string[] = []
  for (const [i, { part_number: number, etag }] of parts.entries()) {
    const file = join(folder, `${number}-${etag}`)
    const found = ETAG.test(etag) ? await missingAsNull(stat(file)) : null
    if (!found) throw badPart(number)
    if (found.size < MIN_PART_BYTES && i < parts.length - 1) {
      const expected = `Expected part ${number} of at least ${MIN_PART_BYTES} bytes, because it is not the last`
      throw new AppError('bad_request', `${expected}; got ${found.size}`)
    }
    files.push(file)
  }
  return files
}

/**
 * Joins the files in a new one and syncs it. Resolves with the size. All copies use the same buffer, because new
 * buffers of gigabytes would wait in memory for garbage collection.
 */
const concatenate = async ([first = '', ...more]: readonly string[], target: string): Promise<number> => {
  await copyFile(first, target) // the kernel copies, or the file system shares blocks
  const whole = await open(target, 'a')
  try {
    const buffer = Buffer.allocUnsafe(1 << 20)
    for (const file of more) {
      const part = await open(file)
      try {
        for (;;) {
          const { bytesRead } = await part.read(buffer, 0, buffer.length)
          if (bytesRead === 0) break
          await whole.appendFile(buffer.subarray(0, bytesRead))
        }
      } finally {
        await part.close()
      }
    }
    await whole.sync()
    return (await whole.stat()).size
  } finally {
    await whole.close()
  }
}
