import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5

/** Locks of this process: one that is forgotten must not be collected, and opened by that. */
const held = new Set<DatabaseSync>()

/**
 * Locks a file for this process and gives the unlock; null while another one, here or elsewhere, has it.
 * An empty SQLite database, because Node has no other lock that the operating system takes back from the dead.
 */
export const lockFile = (file: string): (() => void) | null => {
  const db = new DatabaseSync(file)
  try {
    db.exec('PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE')
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
