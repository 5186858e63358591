import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { clock } from '../clock.ts'
import { isMissing } from '../disk/sync.ts'
import { AppError, isAppError } from '../errors.ts'
import { contentFile } from './backupFolder.ts'
import type { Journal, StoredBlob } from './journal.ts'
import { createFile } from './newFile.ts'
import type { BackupSource, BackupStart, ListedBlob } from './source.ts'

/** Blobs that are copied at the same time. */
const AT_A_TIME = 6
/** The longest time without a request, milliseconds: a service waits five times as long. */
const USE_MS = 60_000

interface Copying {
  readonly dir: string
  readonly source: Pick<BackupSource, 'blob' | 'blobs' | 'rows'>
  readonly start: BackupStart
  /** Blobs of earlier backups and attempts. */
  readonly known: readonly StoredBlob[]
  readonly journal: Pick<Journal, 'add'>
  readonly onCopied: (copied: { readonly blobs: number; readonly of: number }) => void
}

/**
 * Copies the blobs of the service and resolves with all of them, by key. The content of a key never changes, except that of
 * data keys and of the id of the log: these are always read, and as late as possible, so that no erased key is copied.
 */
export const copyBlobs = async ({
  dir,
  source,
  start,
  known,
  journal,
  onCopied,
}: Copying): Promise<StoredBlob[]> => {
  const listed = new Map<string, ListedBlob>()
  for await (const blob of source.blobs(start.backup_id)) listed.set(blob.key, blob)
  const before = new Map(known.map((blob) => [blob.key, blob]))
  const stored = new Map<string, StoredBlob>()
  let copied = 0

  let usedAt = clock.monotonic()
  let using = Promise.resolve()
  /** The service ends a backup without requests, and a look at each known blob can take longer on a slow disk. */
  const stayInUse = (): Promise<void> => {
    if (clock.monotonic() - usedAt < USE_MS) return using
    usedAt = clock.monotonic()
    using = rowsAfterEnd()
    return using
  }
  const rowsAfterEnd = async (): Promise<void> => {
    for await (const { first } of source.rows(start.backup_id, start.position))
      throw new AppError('unavailable', `Expected no row after ${start.position}, got ${first}`)
  }

  const copy = async (blob: ListedBlob): Promise<void> => {
    await stayInUse()
    const { key, size } = blob
    const earlier = isChangeable(key) ? undefined : before.get(key)
    const isKnown = earlier?.bytes === size && (await isStored(dir, earlier))
    const found = isKnown ? earlier : await copyOne(blob)
    if (found) stored.set(key, found)
    onCopied({ blobs: ++copied, of: listed.size })
  }

  const copyOne = async ({ key, size }: ListedBlob): Promise<StoredBlob | null> => {
    const file = await createFile(dir)
    try {
      for await (const chunk of source.blob(start.backup_id, key, 0)) await file.write(chunk)
      if (file.bytes !== size && !isChangeable(key))
        throw new AppError(
          'unavailable',
          `Expected ${size} bytes of the blob ${key}, got ${file.bytes}; repeat the backup`,
        )
      const { bytes, sha256 } = await file.place(({ sha256 }) => contentFile(sha256))
      const blob = { key, bytes, sha256 }
      if (!isChangeable(key)) await journal.add({ blob })
      return blob
    } catch (error) {
      await file.discard()
      if (isAppError(error, 'not_found') && isChangeable(key)) return null // a key that was erased meanwhile
      throw error
    }
  }

  const copyAll = async (blobs: readonly ListedBlob[]): Promise<void> => {
    const left = blobs.toReversed()
    let failure: { readonly error: unknown } | null = null
    const work = async () => {
      for (let next = left.pop(); next && !failure; next = left.pop())
        await copy(next).catch((error: unknown) => {
          failure ??= { error }
        })
    }
    await Promise.all(Array.from({ length: AT_A_TIME }, work))
    if (failure) throw (failure as { readonly error: unknown }).error
  }

  const all = [...listed.values()]
  await copyAll(all.filter(({ key }) => !isChangeable(key)))
  await copyAll(all.filter(({ key }) => isChangeable(key)))
  return [...stored.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
}

/** Whether the content of a key may change: a data key is wrapped again, and a log gets another id. */
const isChangeable = (key: string): boolean => key.startsWith('keys/') || key === 'log-id'

const isStored = async (dir: string, { sha256, bytes }: StoredBlob): Promise<boolean> => {
  try {
    return (await stat(join(dir, contentFile(sha256)))).size === bytes
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}
