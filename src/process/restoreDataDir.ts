import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { OnProgress } from '../backup/makeBackup.ts'
import type { Manifest } from '../backup/manifest.ts'
import { openBackup, type ReadBackup } from '../backup/readBackup.ts'
import { openRestoredRows } from '../backup/restoredRows.ts'
import { adviceFor, isOfFullDisk } from '../disk/fullDisk.ts'
import { isBelowFile, isMissing, syncFileNow, syncFolderNow } from '../disk/sync.ts'
import { AppError, messageOf } from '../errors.ts'
import type { StoredRow } from '../ports/storedLog.ts'
import { MasterKeys } from '../secrets/masterKeys.ts'
import { lockDataDir, noDirectory, ownerOf, RESTORING } from './dataDir.ts'
import { createRestoredLog, openBlobs, openStreamGaps } from './engines.ts'
import { masterKeysIn, SECRETS_FILE } from './secretsFile.ts'

/** Characters of rows in one transaction of the log. */
const BATCH_LENGTH = 8 << 20
/** The entries of a directory without data. */
const NO_DATA = new Set([SECRETS_FILE, 'lost+found'])

interface Given {
  /** The backup. */
  readonly dir: string
  readonly dataDir: string
  /** `SVC_MASTER_KEY`; null when there is none. */
  readonly masterKey: Uint8Array | null
  /** A copy of `secrets.json` to put into the directory; null: the one that is there. */
  readonly secrets: string | null
  readonly onProgress: OnProgress
}

/**
 * Restores a backup into an empty data directory: all of it or nothing.
 * R1: everything is checked before anything is written: the directory, the manifest, the master key. A `secrets.json` that
 * is there is neither replaced nor removed: it may contain the only master key of other data.
 * R2: a marker is written first and removed last. The service does not start beside it, and a repetition starts again.
 */
export const restoreDataDir = async ({
  dir,
  dataDir,
  masterKey,
  secrets,
  onProgress,
}: Given): Promise<Manifest> => {
  const backup = openBackup(dir)
  checkEmpty(dataDir)
  checkMasterKeys(backup.manifest, { dataDir, masterKey, secrets })
  const placed = secrets !== null && !isThere(secrets, dataDir) ? secrets : null
  const unlock = lockDataDir(dataDir, { forRestore: true })
  try {
    checkEmpty(dataDir) // a service may have run there before the lock
    await restoreInto(dataDir, { backup, dir, secrets: placed, onProgress })
    return backup.manifest
  } finally {
    unlock()
  }
}

const restoreInto = async (
  dataDir: string,
  {
    backup,
    dir,
    secrets,
    onProgress,
  }: Pick<Given, 'dir' | 'secrets' | 'onProgress'> & { backup: ReadBackup },
): Promise<void> => {
  const marker = join(dataDir, RESTORING)
  try {
    writeFileSync(marker, `${dir}\n`, { mode: 0o600, flush: true })
    syncFolderNow(dataDir)
    removeData(dataDir)
    if (secrets !== null) placeSecrets(secrets, join(dataDir, SECRETS_FILE))
    await restoreLog(backup, { dataDir, onProgress })
    await restoreBlobs(backup, { dataDir, onProgress })
    syncFolderNow(dataDir)
    rmSync(marker)
    syncFolderNow(dataDir)
  } catch (error) {
    removeData(dataDir)
    if (secrets !== null) rmSync(join(dataDir, SECRETS_FILE), { force: true })
    syncFolderNow(dataDir) // a power cut must not undo the removals alone
    rmSync(marker, { force: true })
    throw error instanceof AppError && !isOfFullDisk(error)
      ? error
      : new AppError(
          'unavailable',
          `${dataDir}: ${messageOf(error)}; nothing was restored${adviceFor(error)}`,
          {
            cause: error,
          },
        )
  }
}

const checkEmpty = (dataDir: string): void => {
  try {
    if (!statSync(dataDir).isDirectory()) throw noDirectory(dataDir)
  } catch (error) {
    if (isMissing(error)) return
    throw isBelowFile(error) ? noDirectory(dataDir) : error
  }
  const entries = readdirSync(dataDir)
  if (entries.includes(RESTORING)) return // of a restore that did not complete
  const data = entries.filter((name) => !NO_DATA.has(name) && !name.startsWith('lock'))
  if (data.length === 0) return
  const user = entries.includes('lock') ? `, and process ${ownerOf(dataDir)} uses it` : ''
  throw new AppError(
    'bad_request',
    `SVC_DATA_DIR: ${dataDir} contains data (${data.slice(0, 4).join(', ')})${user}; restore into an empty directory`,
  )
}

/** Throws `bad_request` unless one of the master keys is that of the backup. `source`: where they are from. */
export const checkBackupKey = (
  { master_key_id, canary }: Manifest,
  source: string,
  keys: readonly [Uint8Array, ...Uint8Array[]],
): void => {
  const masterKeys = new MasterKeys(keys)
  if (masterKeys.has(master_key_id) && masterKeys.opens(master_key_id, canary)) return
  throw new AppError(
    'bad_request',
    `${source}: the backup was made with the master key ${master_key_id}, got ${masterKeys.configured}; ` +
      'use the secrets of that time',
  )
}

/** Each given source must have the key: the service may start with `SVC_MASTER_KEY` or without it. */
const checkMasterKeys = (
  manifest: Manifest,
  { dataDir, masterKey, secrets }: Pick<Given, 'dataDir' | 'masterKey' | 'secrets'>,
): void => {
  const check = (source: string, [first, ...more]: readonly Uint8Array[]) => {
    if (first === undefined)
      throw new AppError(
        'bad_request',
        secrets === null
          ? `The backup needs the master key ${manifest.master_key_id}: copy the secrets.json of the service to ${source}, ` +
              'or name it with --secrets, or set SVC_MASTER_KEY'
          : `--secrets: ${source} does not exist`,
      )
    checkBackupKey(manifest, source, [first, ...more])
  }
  if (masterKey !== null) check('SVC_MASTER_KEY', [masterKey])
  if (masterKey !== null && secrets === null) return
  const file = secrets ?? join(dataDir, SECRETS_FILE)
  check(file, masterKeysIn(file))
}

/** Whether the directory contains these secrets already. Throws `bad_request` if it contains others. */
const isThere = (secrets: string, dataDir: string): boolean => {
  const file = join(dataDir, SECRETS_FILE)
  if (!existsSync(file)) return false
  if (readFileSync(file).equals(readFileSync(secrets))) return true
  throw new AppError(
    'bad_request',
    `--secrets: ${file} exists with other content, and may contain the only master key of other data; move it away`,
  )
}

const DATA = ['log.db', 'log.db-wal', 'log.db-shm', 'blobs', 'index.db', 'index.db-wal', 'index.db-shm']

const removeData = (dataDir: string): void => {
  for (const name of DATA) rmSync(join(dataDir, name), { recursive: true, force: true })
}

/** By a rename, so that a kill leaves no part of the file. */
const placeSecrets = (from: string, to: string): void => {
  const scratch = `${to}.new`
  copyFileSync(from, scratch)
  chmodSync(scratch, 0o600) // a copy has the mode of the original
  syncFileNow(scratch)
  renameSync(scratch, to)
}

interface Restoring {
  readonly dataDir: string
  readonly onProgress: OnProgress
}

const restoreLog = async (backup: ReadBackup, { dataDir, onProgress }: Restoring): Promise<void> => {
  const { position } = backup.manifest
  const restored = await openRestoredRows(backup, await openStreamGaps())
  const log = await createRestoredLog(join(dataDir, 'log.db'))
  let rows: StoredRow[] = []
  let length = 0
  const flush = () => {
    log.append(rows)
    const last = rows.at(-1)
    if (last) onProgress({ what: 'events', done: last.first + last.count - 1, total: position })
    rows = []
    length = 0
  }
  try {
    for await (const row of restored()) {
      rows.push(row)
      length += row.text.length
      if (length >= BATCH_LENGTH) flush()
    }
    flush()
    log.finish(await backup.consumers())
  } catch (error) {
    log.close()
    throw error
  }
}

const restoreBlobs = async (backup: ReadBackup, { dataDir, onProgress }: Restoring): Promise<void> => {
  const folder = join(dataDir, 'blobs')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const blobs = await openBlobs({ blobs: 'embedded:', dataDir })
  const all = await backup.blobs()
  let done = 0
  try {
    for (const blob of all) {
      await blobs.put(blob.key, backup.content(blob))
      onProgress({ what: 'blobs', done: ++done, total: all.length })
    }
  } finally {
    await blobs.close()
  }
}
