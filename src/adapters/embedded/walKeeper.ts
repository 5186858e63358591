import type { DatabaseSync } from 'node:sqlite'
import type { Checkpointer } from './checkpointer.ts'

/** The part of a WAL that is moved while the writer waits: it takes little longer than a commit. */
const REST_BYTES = 256 << 10
/**
 * Bounds a database's WAL: lets the checkpointer move it into the database. SQLite begins the WAL again when all of it was
 * moved, so the last part is moved while the writer waits. The event loop never waits for the disk, unless a writer cannot wait.
 */
export class WalKeeper {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #checkpointer: Checkpointer
  readonly #fullBytes: number
  /** Bytes committed since the last reset of the WAL, without those that were moved. */
  #bytes = 0
  #isMoving = false
  #closed = false
  #settled: Promise<void> | null = null

  /** Replaces SQLite's own checkpoints, which would block the writing thread. */
  constructor(
    db: DatabaseSync,
    file: string,
    checkpointer: Checkpointer,
    { fullBytes }: { fullBytes: number },
  ) {
    this.#db = db
    this.#file = file
    this.#checkpointer = checkpointer
    this.#fullBytes = fullBytes
    db.exec('PRAGMA wal_autocheckpoint=0')
  }

  /** The end of the last move, for which writers should wait; null: they may write. */
  get settled(): Promise<void> | null {
    return this.#settled
  }

  /** Counts the approximate size of a commit. */
  wrote(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#fullBytes && !this.#isMoving) void this.#empty()
  }

  close(): void {
    this.#closed = true
  }

  /** Moves the whole WAL. */
  async #empty(): Promise<void> {
    this.#isMoving = true
    for (let before = Infinity; this.#bytes > REST_BYTES && this.#bytes < before;) {
      before = this.#bytes / 2 // the next move is worth it if it leaves less than this
      await this.#move()
    }
    const last = Promise.withResolvers<void>()
    this.#settled = last.promise
    const isWhole = await this.#move()
    if (!this.#closed && (!isWhole || this.#bytes > 0)) this.#reset()
    this.#settled = null
    this.#isMoving = false
    last.resolve()
  }

  /** Moves what is in the WAL now. Resolves with false if something of it may be left. */
  async #move(): Promise<boolean> {
    const bytes = this.#bytes
    const isWhole = await this.#checkpointer.move(this.#file)
    this.#bytes -= bytes
    return isWhole
  }

  /** Moves the rest in this thread, because a writer could not wait or the checkpointer could not move it. */
  #reset(): void {
    try {
      this.#db.exec('PRAGMA wal_checkpoint(RESTART)')
      this.#bytes = 0
    } catch {
      // In a transaction, or the disk is full: the data is safe in the WAL and is moved later.
    }
  }
}
