import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolderNow } from '../disk/durableNames.ts'
import { adviceFor } from '../disk/fullDisk.ts'
import { isBelowFile, isFileInPath, isMissing } from '../disk/sync.ts'
import { AppError, messageOf } from '../errors.ts'
import { MANIFEST, type Manifest, parseManifest } from './manifest.ts'

/** What a backup that did not complete has stored already. */
export const JOURNAL = 'progress.ndjson'
export const LOCK = 'lock.db'
/** The folder of segments. */
export const LOG = 'log'
export const CONTENT = 'content'
/** The folder of files that are being written. */
export const SCRATCH = 'tmp'
const FOLDERS = [LOG, CONTENT, SCRATCH]
const OURS = new Set([MANIFEST, JOURNAL, LOCK, ...FOLDERS, 'lost+found'])

/** The group, and all other users. */
const OTHERS = 0o077

/** The path of a segment. */
export const segmentFile = (first: number, last: number): string =>
  join(LOG, [first, last].map((position) => String(position).padStart(15, '0')).join('-'))

/** The path of a file in `content/`, which has the name of its SHA-256. Equal contents are stored once. */
export const contentFile = (sha256: string): string => join(CONTENT, sha256.slice(0, 2), sha256)

/** Reads the manifest of a backup. Throws `bad_request` for a directory that is not a backup. */
export const readManifest = (dir: string): Manifest => {
  const file = join(dir, MANIFEST)
  try {
    return parseManifest(readFileSync(file, 'utf8'), file)
  } catch (error) {
    if (!isMissing(error) && !isBelowFile(error)) throw diskError(dir, error)
    throw new AppError(
      'bad_request',
      existsSync(join(dir, JOURNAL))
        ? `${dir}: the first backup into this directory did not complete; repeat svc backup ${dir}`
        : `${dir} is not a backup: it contains no ${MANIFEST}`,
    )
  }
}

/** Makes a directory ready for a backup and creates it if it is missing. Throws `bad_request` for one with other content. */
export const prepareFolder = (dir: string): void => {
  try {
    makeFolder(dir)
    checkOurs(dir)
    closeToOthers(dir)
    for (const name of FOLDERS) mkdirSync(join(dir, name), { recursive: true, mode: 0o700 })
  } catch (error) {
    throw diskError(dir, error)
  }
}

const makeFolder = (dir: string): void => {
  try {
    makeFolderNow(dir, 0o700)
  } catch (error) {
    if (!isFileInPath(error)) throw error
    throw new AppError('bad_request', `${dir}: expected a directory, got a file or a path below one`)
  }
}

/**
 * Throws `bad_request` for a directory with other content, because a backup removes the files in its folders that it does
 * not name.
 */
const checkOurs = (dir: string): void => {
  const entries = readdirSync(dir)
  if (entries.includes(MANIFEST)) return void readManifest(dir)
  const isBegun = entries.includes(JOURNAL)
  const other = entries.find((name) =>
    FOLDERS.includes(name) ? !isBegun && isUsed(join(dir, name)) : !OURS.has(name) && !name.startsWith(LOCK),
  )
  if (other !== undefined)
    throw new AppError(
      'bad_request',
      `${dir}: expected an empty directory or an earlier backup, got a directory with ${other}`,
    )
}

const isUsed = (path: string): boolean => !statSync(path).isDirectory() || readdirSync(path).length > 0

/** Removes what a killed process was writing. Returns the manifest of the earlier backup; null if there is none. */
export const earlierBackup = (dir: string): Manifest | null => {
  try {
    rmSync(join(dir, SCRATCH), { recursive: true, force: true })
    mkdirSync(join(dir, SCRATCH), { mode: 0o700 })
  } catch (error) {
    throw diskError(dir, error)
  }
  return existsSync(join(dir, MANIFEST)) ? readManifest(dir) : null
}

const closeToOthers = (dir: string): void => {
  if (process.getuid === undefined) return // Windows has no modes
  const { mode, uid } = statSync(dir)
  if ((mode & OTHERS) === 0) return
  if (uid !== process.getuid() && process.getuid() !== 0)
    throw new AppError(
      'bad_request',
      `${dir}: other users have access to it; run chmod 700 ${dir}, because a backup contains all data`,
    )
  chmodSync(dir, 0o700)
}

/** An error of the disk as one line that names the directory. */
export const diskError = (dir: string, error: unknown): AppError => {
  if (error instanceof AppError) return error
  return new AppError('unavailable', `${dir}: ${messageOf(error)}${adviceFor(error)}`, { cause: error })
}
