import type { DatabaseSync } from 'node:sqlite'
import { clock } from '../../../clock.ts'
import { transaction, unavailable } from '../sqlite.ts'

/** Runs writes in transactions. After an error, none of the writes since the last commit is stored. */
export interface Commits {
  run(work: () => void): void
  /** Commits what was written. */
  end(): void
}

/** A transaction for each write. */
export const eachCommitted = (db: DatabaseSync): Commits => ({
  run: (work) => transaction(db, work),
  end: () => {},
})

/**
 * The settings while a thread fills a file: pages are written once and without syncs. After kill -9 the file is whole. After a
 * power cut it may not be, so it is filled again.
 */
const FILLING = 'PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE'

/** The work that a kill may lose, milliseconds. */
const COMMIT_MS = 1000

/**
 * Transactions of many batches, in a file that only a thread uses. A page that several batches change is written once. SQLite
 * keeps no more changed pages in memory than its cache has.
 */
export class RareCommits implements Commits {
  readonly #db: DatabaseSync
  /** Limits the size of the file by the present room on the disk. Called before anything that may use much. */
  readonly bound: () => void
  readonly #before: (() => void)[] = []
  #until = 0

  constructor(db: DatabaseSync, bound: () => void) {
    this.#db = db
    this.bound = bound
    db.exec(FILLING)
  }

  /** Work that belongs to each commit. */
  beforeEach(work: () => void): void {
    this.#before.push(work)
  }

  run(work: () => void): void {
    try {
      if (!this.#db.isTransaction) {
        this.bound()
        this.#db.exec('BEGIN IMMEDIATE')
        this.#until = clock.monotonic() + COMMIT_MS
      }
      work()
      if (clock.monotonic() >= this.#until) this.end()
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw unavailable(error)
    }
  }

  end(): void {
    if (!this.#db.isTransaction) return
    try {
      for (const work of this.#before) work()
      this.#db.exec('COMMIT')
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw unavailable(error)
    }
  }
}
