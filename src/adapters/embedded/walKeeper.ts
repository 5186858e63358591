import type { DatabaseSync } from 'node:sqlite'
import type { Checkpointer } from './checkpointer.ts'

/** Keeps a database's WAL from growing: sends the checkpointer to move it, then lets it begin anew. */
export class WalKeeper {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #checkpointer: Checkpointer
  readonly #fullBytes: number
  /** Bytes committed since the WAL last began anew, and how many of them the checkpointer was sent to move. */
  #bytes = 0
  #moving = 0
  #closed = false

  /** Takes over from SQLite's own checkpoints, which would hold up the thread that writes. */
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

  /** About how much a commit wrote. */
  wrote(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes <= this.#fullBytes || this.#moving > 0) return
    this.#moving = this.#bytes
    void this.#checkpointer.move(this.#file).then(() => this.#moved())
  }

  close(): void {
    this.#closed = true
  }

  /** The bulk is in the database: move what came meanwhile and let the WAL begin anew, unless it is much. */
  #moved(): void {
    if (this.#closed) return
    this.#bytes -= this.#moving
    this.#moving = 0
    if (this.#bytes > this.#fullBytes) return
    try {
      this.#db.exec('PRAGMA wal_checkpoint(RESTART)')
      this.#bytes = 0
    } catch {
      // In a transaction, or the disk is full: what the WAL holds is safe there, and is moved later.
    }
  }
}
