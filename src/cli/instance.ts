import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { lockFile } from '../disk/lockFile.ts'
import { makeFolder } from '../disk/makeFolder.ts'
import { isMissing } from '../disk/sync.ts'
import { AppError, unreadable } from '../errors.ts'

/** A running `svc dev`. */
export interface Instance {
  readonly url: string
  readonly key: string
  readonly project: string
  /** The data directory of its service; null if it deploys to a service elsewhere. */
  readonly dataDir: string | null
  /** The process of `svc dev`. */
  readonly pid: number
}

/** An instance with the file that announces it. */
export interface FoundInstance extends Instance {
  readonly file: string
}

const fileIn = (folder: string): string => join(folder, '.svc', 'dev.json')
const lockIn = (file: string): string => join(dirname(file), 'dev.lock')

/** Commands that look for an instance lock the file for a moment. */
const LOCK_WAITS_MS = 1000

/**
 * Takes a folder for the instance of this process. The system releases it at the end of the process. Returns a function
 * that releases it; null while another instance has the folder.
 */
export const takeFolder = (folder: string): (() => void) | null => {
  const file = fileIn(folder)
  const isNew = makeFolder(dirname(file), 0o700) !== undefined
  if (isNew) writeFileSync(join(dirname(file), '.gitignore'), '*\n') // `.svc` contains keys and data
  return lockFile(lockIn(file), LOCK_WAITS_MS)
}

/**
 * The instance of the folder, or of the nearest folder above it; null without one. A file whose process has ended is
 * ignored, and so is a file of another user: it could direct secrets to a service of that user.
 */
export const readInstance = (from: string): FoundInstance | null => {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const file = fileIn(folder)
    const text = ownText(file)
    const instance = text === null ? null : parsed(file, text)
    if (instance && isRunning(instance.pid) && isTaken(file)) return { ...instance, file }
    if (dirname(folder) === folder) return null
  }
}

/**
 * Announces the instance to the commands in the folder. Only this user can read the file, because it contains the key. Returns
 * a function that removes the announcement, unless another instance has replaced it.
 */
export const writeInstance = (
  folder: string,
  { url, key, project, dataDir, pid }: Instance,
): (() => void) => {
  const file = fileIn(folder)
  makeFolder(dirname(file), 0o700)
  const part = `${file}.${pid}.part`
  rmSync(part, { force: true })
  const text = `${JSON.stringify({ url, key, project, data_dir: dataDir, pid })}\n`
  writeFileSync(part, text, { mode: 0o600, flag: 'wx' })
  renameSync(part, file) // a reader sees all of it or none
  return () => {
    if (ownText(file) === text) rmSync(file, { force: true })
  }
}

/** The text of a file of this user; null if there is none, such as after `svc dev` has removed it. */
const ownText = (file: string): string | null => {
  try {
    const isOwn = process.getuid === undefined || statSync(file).uid === process.getuid()
    return isOwn ? readFileSync(file, 'utf8') : null
  } catch (error) {
    if (isMissing(error) || isForeign(error)) return null
    throw new AppError('bad_request', unreadable(file, error))
  }
}

/** `.svc` may be a file, or a folder of another user. */
const isForeign = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && ['ENOTDIR', 'EACCES', 'EPERM'].includes(String(error.code))

/** The text is in no error, because it contains a key: the one of `JSON.parse` would repeat a part of it. */
const parsed = (file: string, text: string): Instance => {
  const refused = (reason: string) =>
    new AppError(
      'bad_request',
      `${file}: expected JSON with url, key, project and pid, but ${reason}; remove it, and start svc dev again: it writes the file`,
    )
  let value: Readonly<Record<string, unknown>> | null
  try {
    value = JSON.parse(text) as typeof value
  } catch {
    throw refused('it is no JSON')
  }
  const { url, key, project, data_dir: dataDir = null, pid } = value ?? {}
  if (typeof url !== 'string' || !/^https?:\/\//.test(url)) throw refused('url is not an http or https URL')
  if (typeof key !== 'string' || typeof project !== 'string') throw refused('key or project is not a text')
  if (dataDir !== null && typeof dataDir !== 'string') throw refused('data_dir is not a text')
  if (!Number.isInteger(pid) || Number(pid) <= 0) throw refused('pid is not the id of a process')
  return { url, key, project, dataDir, pid: Number(pid) }
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/**
 * Whether an instance has the folder. Its process id alone does not show that: after a crash, another process may get the same
 * one, and in a container each start does.
 */
const isTaken = (file: string): boolean => {
  const lock = lockIn(file)
  if (!existsSync(lock)) return true // an instance of an earlier version
  try {
    const unlock = lockFile(lock)
    unlock?.()
    return unlock === null
  } catch {
    return true // the folder cannot be written, so its instance cannot be asked
  }
}
