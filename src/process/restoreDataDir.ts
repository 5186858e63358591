import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OnProgress } from '../backup/makeBackup.ts'
import type { Manifest } from '../backup/manifest.ts'
import { openBackup, type ReadBackup } from '../backup/readBackup.ts'
import { makeFolderNow } from '../disk/durableFolders.ts'
import { syncFileNow, syncFolderNow } from '../disk/sync.ts'
import { AppError, messageOf } from '../errors.ts'
import type { StoredRow } from '../ports/storedLog.ts'
import { MasterKeys } from '../secrets/masterKeys.ts'
import { lockDataDir, ownerOf, RESTORING } from './dataDir.ts'
import { createRestoredLog, openBlobs } from './engines.ts'
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
 * R1: everything is checked before anything is written: the directory, the manifest, the master key.
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
  const secretsFile = secrets ?? join(dataDir, SECRETS_FILE)
  checkMasterKey(backup.manifest, { masterKey, secretsFile, isGiven: secrets !== null })
  makeFolderNow(dataDir, 0o700)
  const marker = join(dataDir, RESTORING)
  const unlock = lockDataDir(dataDir, { forRestore: true })
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
    return backup.manifest
  } catch (error) {
    removeData(dataDir)
    if (secrets !== null) rmSync(join(dataDir, SECRETS_FILE), { force: true })
    rmSync(marker, { force: true })
    throw error instanceof AppError
      ? error
      : new AppError('unavailable', `${dataDir}: ${messageOf(error)}; nothing was restored`, { cause: error })
  } finally {
    unlock()
  }
}

const checkEmpty = (dataDir: string): void => {
  if (!existsSync(dataDir)) return
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

const checkMasterKey = (
  { master_key_id, canary }: Manifest,
  {
    masterKey,
    secretsFile,
    isGiven,
  }: { masterKey: Uint8Array | null; secretsFile: string; isGiven: boolean },
): void => {
  const keys = masterKey === null ? masterKeysIn(secretsFile) : [masterKey]
  const [first, ...more] = keys
  if (first === undefined)
    throw new AppError(
      'bad_request',
      isGiven
        ? `--secrets: ${secretsFile} does not exist`
        : `The backup needs the master key ${master_key_id}: copy the secrets.json of the service to ${secretsFile}, ` +
            'or name it with --secrets, or set SVC_MASTER_KEY',
    )
  const masterKeys = new MasterKeys([first, ...more])
  if (!masterKeys.has(master_key_id) || !masterKeys.opens(master_key_id, canary))
    throw new AppError(
      'bad_request',
      `${masterKey === null ? secretsFile : 'SVC_MASTER_KEY'}: the backup was made with the master key ` +
        `${master_key_id}, got ${masterKeys.configured}; use the secrets of that time`,
    )
}

const DATA = ['log.db', 'log.db-wal', 'log.db-shm', 'blobs', 'index.db', 'index.db-wal', 'index.db-shm']

const removeData = (dataDir: string): void => {
  for (const name of DATA) rmSync(join(dataDir, name), { recursive: true, force: true })
}

const placeSecrets = (from: string, to: string): void => {
  copyFileSync(from, to)
  rmSync(`${to}.new`, { force: true })
  syncFileNow(to)
}

interface Restoring {
  readonly dataDir: string
  readonly onProgress: OnProgress
}

const restoreLog = async (backup: ReadBackup, { dataDir, onProgress }: Restoring): Promise<void> => {
  const { segments, position } = backup.manifest
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
    for (const segment of segments)
      for await (const { first, count, text } of backup.rows(segment)) {
        rows.push({ first, count, text: text.toString('utf8') })
        length += text.length
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
