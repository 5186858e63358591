import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Creates a folder and its missing parents. Returns the first one that was missing; undefined if there was none.
 * The recursion of Node never ends where a folder exists but cannot contain others, as in `/proc`: it takes each ENOENT for
 * a missing parent. Folders that a user has named are therefore made by this function.
 */
export const makeFolder = (path: string, mode?: number): string | undefined => {
  const missing: string[] = []
  for (let at = resolve(path); statSync(at, { throwIfNoEntry: false }) === undefined; at = dirname(at))
    missing.unshift(at)
  const made = missing.filter((each) => madeNow(each, mode))
  // Refuses a file in place of the folder.
  if (missing.length === 0) mkdirSync(path, { recursive: true })
  return made[0]
}

/** Whether the folder was created: another process may have created it in the meantime. */
const madeNow = (path: string, mode: number | undefined): boolean => {
  try {
    mkdirSync(path, mode)
    return true
  } catch (error) {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
    return false
  }
}
