import type { DatabaseSync } from 'node:sqlite'
import type { Checkpointer } from './checkpointer.ts'

/** Bounds a database's WAL: lets the checkpointer move it into the database, then resets it. */
export class WalKeeper {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #checkpointer: Checkpointer
  readonly #fullBytes: number
  /** Bytes committed since the last reset of the WAL, and the part of them that the checkpointer is moving. */
  #bytes = 0
  #moving = 0
  #closed = false

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

  /** Counts the approximate size of a commit. */
  wrote(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes <= this.#fullBytes || this.#moving > 0) return
    this.#moving = this.#bytes
    void this.#checkpointer.move(this.#file).then(() => this.#moved())
  }

  close(): void {
    this.#closed = true
  }

  /** Called when most of the WAL is in the database: moves the rest, if it is small, and resets the WAL. */
  #moved(): void {
    if (this.#closed) return
    this.#bytes -= this.#moving
    this.#moving = 0
    if (this.#bytes > this.#fullBytes) return
    try {
      this.#db.exec('PRAGMA wal_checkpoint(RESTART)')
      this.#bytes = 0
    } catch {
      // In a transaction, or the disk is full: the data is safe in the WAL and is moved later.
    }
  }
}
