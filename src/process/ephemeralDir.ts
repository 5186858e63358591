import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lockFile } from '../disk/lockFile.ts'

const PREFIX = 'svc-dev-'

/** Locked by the process that removes the folder at its end. */
const OWNER = 'owner.db'
/** Locked by the service whose data is in the folder. */
const SERVICE = 'lock.db'

/** A data directory that lasts as long as this process. */
export interface EphemeralDir {
  readonly path: string
  remove(): void
}

/** Creates a data directory in the temporary folder, and locks it until it is removed or this process ends. */
export const openEphemeralDir = (): EphemeralDir => {
  for (;;) {
    const path = mkdtempSync(join(tmpdir(), PREFIX))
    const unlock = lockFile(join(path, OWNER))
    // Another process can find the folder before it is locked, and remove it as that of a dead one.
    if (unlock && existsSync(join(path, OWNER))) return { path, remove: () => removeLocked(path, [unlock]) }
    unlock?.()
  }
}

/**
 * Removes the directories of processes that were killed. The system releases a lock at the end of its process, so a
 * directory whose two locks are free has neither an owner nor a service. All others remain.
 */
export const removeDeadDirs = (): void => {
  for (const name of readdirSync(tmpdir())) {
    const path = join(tmpdir(), name)
    try {
      if (name.startsWith(PREFIX) && isOwn(path)) removeIfDead(path)
    } catch {
      // it is damaged, or cannot be removed: that is no reason against a start
    }
  }
}

const removeIfDead = (path: string): void => {
  const locks: (() => void)[] = []
  for (const name of [OWNER, SERVICE]) {
    if (!existsSync(join(path, name))) continue // it was killed before its service began
    const unlock = lockFile(join(path, name))
    if (unlock === null) {
      for (const each of locks) each()
      return
    }
    locks.push(unlock)
  }
  removeLocked(path, locks)
}

const removeLocked = (path: string, locks: readonly (() => void)[]): void => {
  rmSync(path, { recursive: true, force: true })
  for (const unlock of locks) unlock()
}

/** Whether this user has created the folder as one of these. A link may lead anywhere. */
const isOwn = (path: string): boolean => {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return (
    stat?.isDirectory() === true &&
    stat.uid === (process.getuid?.() ?? stat.uid) &&
    existsSync(join(path, OWNER))
  )
}
