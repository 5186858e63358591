import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncFileNow } from '../disk/sync.ts'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'

/** Where a service that runs as root keeps the files of children: other users cannot enter its data directory. */
const ROOT = '/var/tmp'
const PREFIX = 'svc-'

/** The name of the file with the data directory that a cache belongs to. */
const OWNER = 'data-dir'

/** The path of the cache of a data directory, which is given by its real path. */
export const childCacheOf = (dataDir: string, root: string = ROOT): string => {
  const digest = createHash('sha256').update(dataDir).digest('hex').slice(0, 16)
  return join(realpathSync(root), `${PREFIX}${digest}`)
}

/**
 * Creates the cache of a data directory outside of it, which other users may enter but not list. Caches of data
 * directories that no longer exist are removed.
 */
export const openChildCache = (dataDir: string, root: string = ROOT): string => {
  const real = realpathSync(dataDir)
  removeAbandoned(root)
  const dir = childCacheOf(real, root)
  mkdirSync(dir, { recursive: true, mode: 0o711 })
  if (!isOwn(dir))
    throw new AppError(
      'unavailable',
      `${dir}: expected a directory of this user that no other user can write, remove it`,
    )
  for (const path of [dir, join(dir, 'builds')]) {
    mkdirSync(path, { recursive: true })
    chmodSync(path, 0o711) // also under a strict umask
  }
  nameOwner(dir, real)
  return dir
}

/** Names the owner of a cache. Other services that start, and a power cut, find the whole name or none. */
const nameOwner = (dir: string, owner: string): void => {
  const file = join(dir, OWNER)
  if (existsSync(file) && readFileSync(file, 'utf8') === owner) return
  const temporary = `${file}.${newId()}`
  writeFileSync(temporary, owner, { mode: 0o600, flush: true })
  renameSync(temporary, file)
}

/** Another user may have created a directory or a link with this name first. */
const isOwn = (dir: string): boolean => {
  const { uid, mode } = lstatSync(dir)
  return lstatSync(dir).isDirectory() && uid === process.getuid?.() && (mode & 0o022) === 0
}

const removeAbandoned = (root: string): void => {
  for (const name of readdirSync(root)) {
    const dir = join(root, name)
    try {
      if (!name.startsWith(PREFIX) || !isOwn(dir)) continue
      const owner = readFileSync(join(dir, OWNER), 'utf8')
      // An empty name is no proof: a build before this one wrote it in two steps.
      if (owner !== '' && !existsSync(owner)) rmSync(dir, { recursive: true, force: true })
    } catch {
      // it has no owner, or another service removes it too
    }
  }
}

/** Whether every user can reach and read the path. */
export const isOpenToAll = (path: string): boolean => {
  let parent = dirname(path)
  for (;;) {
    if ((statSync(parent).mode & 0o001) === 0) return false
    if (parent === dirname(parent)) break
    parent = dirname(parent)
  }
  const { mode } = statSync(path)
  return (mode & 0o004) !== 0 && (statSync(path).isFile() || (mode & 0o001) !== 0)
}

/** The path of a Node that every user can execute: the given one, or a copy in the cache. */
export const nodeForAll = (node: string, cacheDir: string): string => {
  const real = realpathSync(node)
  if (isOpenToAll(real)) return real
  const { size, mtimeMs, mode } = statSync(real)
  const copy = join(cacheDir, `${basename(real)}-${size}-${Math.trunc(mtimeMs)}`)
  if (existsSync(copy)) return copy
  const temporary = `${copy}.${newId()}`
  try {
    if ((mode & 0o005) !== 0o005) throw new Error('Expected a file that all users may execute')
    linkSync(real, temporary)
  } catch {
    copyFileSync(real, temporary)
    chmodSync(temporary, 0o755)
    syncFileNow(temporary) // a power cut must not leave the name without the program
  }
  renameSync(temporary, copy)
  return copy
}
