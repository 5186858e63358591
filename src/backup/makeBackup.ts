import { readdirSync, readFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { clock } from '../clock.ts'
import { syncFolder } from '../disk/sync.ts'
import { AppError, isAppError } from '../errors.ts'
import { CONTENT, contentFile, diskError, earlierBackup, JOURNAL, LOG } from './backupFolder.ts'
import { copyBlobs } from './copyBlobs.ts'
import { chainOf, copyLog } from './copyLog.ts'
import { Journal, type StoredBlob } from './journal.ts'
import { blobsText, consumersText, parseBlobs } from './lists.ts'
import { MANIFEST, type Manifest, manifestText } from './manifest.ts'
import { writeWhole } from './newFile.ts'
import type { BackupSource, BackupStart } from './source.ts'

/** A long operation reports what it has done of what. */
interface Progress {
  readonly what: 'events' | 'blobs'
  readonly done: number
  readonly total: number
}

export type OnProgress = (progress: Progress) => void

/** Attempts in which the master key may be replaced meanwhile. */
const ATTEMPTS = 3

/**
 * Backs up a running service into a directory, or continues the backup there. The caller has prepared and locked it.
 * D1: the manifest is replaced last, when everything that it names is synced, so a crash leaves the earlier backup.
 * D2: files that no manifest names are removed after that. An erased data key is therefore gone when it resolves.
 */
export const makeBackup = async ({
  dir,
  source,
  onProgress,
}: {
  readonly dir: string
  readonly source: BackupSource
  readonly onProgress: OnProgress
}): Promise<Manifest> => {
  const earlier = earlierBackup(dir)
  for (let attempt = 1; ; attempt++) {
    const start = await source.begin()
    try {
      return await copyAll({ dir, source, onProgress, earlier, start })
    } catch (error) {
      await source.end(start.backup_id)
      if (!isAppError(error, 'conflict') || attempt === ATTEMPTS) throw diskError(dir, error)
    }
  }
}

interface Copying {
  readonly dir: string
  readonly source: BackupSource
  readonly onProgress: OnProgress
  readonly earlier: Manifest | null
  readonly start: BackupStart
}

const copyAll = async ({ dir, source, onProgress, earlier, start }: Copying): Promise<Manifest> => {
  if (earlier && earlier.log_id !== start.log_id)
    throw new AppError(
      'bad_request',
      `${dir}: expected a backup of the log ${start.log_id}, got one of the log ${earlier.log_id}; use another directory`,
    )
  const { journal, progress } = await Journal.open(dir, start.log_id)
  try {
    const segments = await copyLog({
      dir,
      source,
      start,
      journal,
      known: chainOf(dir, earlier?.segments ?? [], progress.segments),
      onPosition: (done) => onProgress({ what: 'events', done, total: start.position }),
    })
    const blobs = await copyBlobs({
      dir,
      source,
      start,
      journal,
      known: [...(earlier ? blobsOf(dir, earlier) : []), ...progress.blobs],
      onCopied: ({ blobs: done, of: total }) => onProgress({ what: 'blobs', done, total }),
    })
    await source.complete(start.backup_id)
    const listed = await writeWhole(dir, blobsText(blobs), ({ sha256 }) => contentFile(sha256))
    const consumers = await writeWhole(dir, consumersText(start.consumers), ({ sha256 }) =>
      contentFile(sha256),
    )
    const manifest: Manifest = {
      created_at: clock.iso(),
      log_id: start.log_id,
      position: start.position,
      master_key_id: start.master_key_id,
      canary: start.canary,
      segments,
      blobs: {
        bytes: listed.bytes,
        sha256: listed.sha256,
        count: blobs.length,
        content_bytes: blobs.reduce((sum, { bytes }) => sum + bytes, 0),
      },
      consumers: { bytes: consumers.bytes, sha256: consumers.sha256 },
    }
    await syncFolders(dir)
    await writeWhole(dir, manifestText(manifest), () => MANIFEST) // D1
    await syncFolder(dir)
    await sweep(dir, manifest, blobs) // D2
    return manifest
  } finally {
    await journal.close()
  }
}

/** The blobs of an earlier backup. A damaged list is no error: the blobs are copied again. */
const blobsOf = (dir: string, { blobs }: Manifest): StoredBlob[] => {
  try {
    const file = contentFile(blobs.sha256)
    return parseBlobs(readFileSync(join(dir, file), 'utf8'), file)
  } catch {
    return []
  }
}

const contentFolders = (dir: string): string[] =>
  readdirSync(join(dir, CONTENT)).map((name) => join(dir, CONTENT, name))

const syncFolders = async (dir: string): Promise<void> => {
  for (const folder of [join(dir, LOG), ...contentFolders(dir), join(dir, CONTENT), dir])
    await syncFolder(folder)
}

const sweep = async (
  dir: string,
  { segments, ...manifest }: Manifest,
  blobs: readonly StoredBlob[],
): Promise<void> => {
  const named = new Set([
    ...segments.map(({ file }) => file),
    ...[...blobs, manifest.blobs, manifest.consumers].map(({ sha256 }) => contentFile(sha256)),
  ])
  for (const folder of [join(dir, LOG), ...contentFolders(dir)]) {
    const unnamed = (await readdir(folder))
      .map((name) => join(folder, name))
      .filter((path) => !named.has(path.slice(dir.length + 1)))
    for (const path of unnamed) await rm(path, { force: true, recursive: true })
    if (unnamed.length > 0) await syncFolder(folder)
  }
  await rm(join(dir, JOURNAL), { force: true })
}
