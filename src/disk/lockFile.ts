import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5

/** The locks of this process. Without a reference, garbage collection would release a lock. */
const held = new Set<DatabaseSync>()

/**
 * Locks a file for this process and returns a function that unlocks it; null if it is already locked. The lock
 * is an empty SQLite database, because Node has no other lock that the system releases when a process dies. `waitMs` is the
 * time to wait for another process.
 */
export const lockFile = (file: string, waitMs = 0): (() => void) | null => {
  const db = new DatabaseSync(file, { timeout: waitMs })
  try {
    // A journal in a file could not be created on a full disk, where the service must start and wait for room.
    db.exec('PRAGMA journal_mode=MEMORY; PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE')
    held.add(db)
    return () => {
      held.delete(db)
      db.close()
    }
  } catch (error) {
    db.close()
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return null
    throw error
  }
}
