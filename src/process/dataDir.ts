import {
  chmodSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { makeFolderNow } from '../disk/durableNames.ts'
import { adviceFor, isFullDisk } from '../disk/fullDisk.ts'
import { isFileInPath } from '../disk/sync.ts'
import { AppError, reasonOf } from '../errors.ts'
import { lockFile } from '../disk/lockFile.ts'

/** Marks a directory whose restore did not complete. */
export const RESTORING = 'restoring'

/**
 * Locks the data directory for this process, because two services would corrupt its log. The operating system releases
 * the lock when the process ends. The file `lock` only contains the process id. Returns a function that unlocks.
 */
export const lockDataDir = (dir: string, { forRestore = false } = {}): (() => void) => {
  const owner = join(dir, 'lock')
  let unlock: (() => void) | null
  try {
    makeFolderNow(dir, 0o700)
    closeToOthers(dir)
    unlock = lockFile(join(dir, 'lock.db'))
    if (unlock) writeOwner(owner)
  } catch (error) {
    if (error instanceof AppError) throw error
    if (isFileInPath(error)) throw noDirectory(dir)
    throw new AppError(
      'unavailable',
      `SVC_DATA_DIR: cannot write in ${dir} (${reasonOf(error)})${adviceFor(error)}`,
      {
        cause: error,
      },
    )
  }
  if (!unlock) {
    throw new AppError(
      'unavailable',
      `${dir} is in use by process ${readOwner(owner)}: stop it, or set SVC_DATA_DIR to another directory`,
    )
  }
  const release = () => {
    rmSync(owner, { force: true })
    unlock()
  }
  if (forRestore || !existsSync(join(dir, RESTORING))) return release
  release()
  throw new AppError(
    'unavailable',
    `${dir} contains a restore that did not complete: run svc restore again, or remove the directory`,
  )
}

/** The refusal of a data directory whose path is a file. */
export const noDirectory = (dir: string): AppError =>
  new AppError('unavailable', `SVC_DATA_DIR: expected a directory, got a file or a path below one: ${dir}`)

/** The process that has locked the directory, for messages. */
export const ownerOf = (dir: string): string => readOwner(join(dir, 'lock'))

/** The id is only for people. A full disk does not prevent the start, which waits for room itself. */
const writeOwner = (file: string): void => {
  try {
    writeFileSync(file, String(process.pid), { mode: 0o600 })
  } catch (error) {
    if (!isFullDisk(error)) throw error
  }
}

/** The group, and all other users. */
const OTHERS = 0o077
const STICKY = 0o1000
/** A file of every data directory, and the entry of an empty file system. */
const OURS = new Set(['lock.db', 'log.db', 'secrets.json', RESTORING])
const EMPTY = new Set(['lost+found'])

/**
 * Takes the rights of other users from a directory of the service and its entries. Refuses a directory with other
 * content, because its mode is the decision of its owner.
 */
const closeToOthers = (dir: string): void => {
  if (process.getuid === undefined) return // Windows has no modes
  const { mode, uid } = statSync(dir)
  const entries = readdirSync(dir)
  const isOurs = entries.some((name) => OURS.has(name)) || entries.every((name) => EMPTY.has(name))
  if (mode & OTHERS) {
    const me = process.getuid()
    if (!isOurs || mode & STICKY || (me !== 0 && me !== uid))
      throw new AppError(
        'unavailable',
        `SVC_DATA_DIR: other users have access to ${dir} (mode ${(mode & 0o7777).toString(8)}): ` +
          `run chmod 700 ${dir}, or set SVC_DATA_DIR to a new directory inside it`,
      )
    chmodSync(dir, 0o700)
  }
  for (const name of isOurs ? entries : []) {
    if (name === 'secrets.json') continue // a copy that others could read is reported, not repaired in silence
    const path = join(dir, name)
    const entry = lstatSync(path)
    if (!entry.isSymbolicLink() && entry.uid === process.getuid() && entry.mode & OTHERS)
      chmodSync(path, entry.mode & 0o700)
  }
}

const readOwner = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return 'unknown' // it is just starting or stopping
  }
}
