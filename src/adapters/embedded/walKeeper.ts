import type { DatabaseSync } from 'node:sqlite'
import type { Checkpointer } from './checkpointer.ts'

/** Bytes of commits without a sync after which the WAL is synced: a sync of many of them at once delays those of other files. */
const SYNC_BYTES = 512 << 10

interface Options {
  /** Bytes from which the WAL is moved. */
  readonly fullBytes: number
  /** Whether commits leave the sync to the keeper. */
  readonly syncs?: boolean
}

/** Bounds a database's WAL: lets the checkpointer move it into the database, then resets it. Also syncs it where commits do not. */
export class WalKeeper {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #checkpointer: Checkpointer
  readonly #fullBytes: number
  readonly #syncs: boolean
  /** Bytes committed since the last reset of the WAL. */
  #bytes = 0
  /** Bytes committed since the last sync that was asked for. */
  #unsynced = 0
  /** The move that the checkpointer works on. */
  #moving: Promise<void> | undefined
  #closed = false

  /** Replaces SQLite's own checkpoints, which would block the writing thread. */
  constructor(
    db: DatabaseSync,
    file: string,
    checkpointer: Checkpointer,
    { fullBytes, syncs = false }: Options,
  ) {
    this.#db = db
    this.#file = file
    this.#checkpointer = checkpointer
    this.#fullBytes = fullBytes
    this.#syncs = syncs
    db.exec('PRAGMA wal_autocheckpoint=0')
  }

  /** Counts the approximate size of a commit. */
  wrote(bytes: number): void {
    this.#bytes += bytes
    if (this.#syncs) this.#sync(bytes)
    if (this.#bytes > this.#fullBytes) void this.move()
  }

  #sync(bytes: number): void {
    this.#unsynced += bytes
    if (this.#unsynced < SYNC_BYTES || this.#closed) return
    this.#unsynced = 0
    this.#checkpointer.sync(this.#file)
  }

  /** Moves the WAL into the database. A database that has lost pages gets smaller with it. */
  move(): Promise<void> {
    const moved = this.#bytes
    this.#moving ??= this.#checkpointer.move(this.#file).then(() => this.#reset(moved))
    return this.#moving
  }

  /** Resolves when the WAL is not full: work that can wait would write faster than the WAL is moved, and fill the disk. */
  async hasRoom(): Promise<void> {
    while (this.#bytes > this.#fullBytes && !this.#closed) await this.move()
  }

  close(): void {
    this.#closed = true
  }

  /** Called when most of the WAL is in the database: moves the rest, if it is small, and resets the WAL. */
  #reset(moved: number): void {
    this.#moving = undefined
    if (this.#closed) return
    this.#bytes -= moved
    if (this.#bytes > this.#fullBytes) return
    try {
      this.#db.exec('PRAGMA wal_checkpoint(RESTART)')
      this.#bytes = 0
    } catch {
      // In a transaction, or the disk is full: the data is safe in the WAL and is moved later.
    }
  }
}
