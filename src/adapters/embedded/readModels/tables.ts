import type { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../../errors.ts'
import type { CollectionSpec, Version } from '../../../ports/readModels.ts'
import type { Checkpointer } from '../checkpointer.ts'
import { WalKeeper } from '../walKeeper.ts'
import { boundSize } from './boundSize.ts'
import { RareCommits } from './commits.ts'
import { fileIn } from './file.ts'
import { LateWrites } from './lateWrites.ts'
import { Registry } from './registry.ts'
import type { SideFiles } from './sideFiles.ts'
import { Table, tableName } from './table.ts'

const WAL_FULL_BYTES = 32 << 20
/** The most that SQLite maps. */
const MAPPED_BYTES = 0x7fff0000

/** A thread fills the file: no other connection uses it. */
export interface Filling {
  /** The bytes of the disk that the thread leaves free; null: it may use all. */
  readonly leaves: number | null
}

interface Parts {
  readonly dir: string
  /** `read-models.db`, or a side file in the thread that fills it. */
  readonly db: DatabaseSync
  readonly sides: SideFiles
  readonly checkpointer: Checkpointer
  readonly filling: Filling | undefined
}

/** The tables of one `read-models.db` and of its side files, by version. */
export class Tables {
  readonly db: DatabaseSync
  readonly registry: Registry
  readonly #sides: SideFiles
  readonly #wal: WalKeeper
  /** Those of a thread; undefined: each write is committed. */
  readonly #rarely: RareCommits | undefined
  readonly #opened = new Map<string, Table>()
  readonly #late = new Map<Table, LateWrites>()

  constructor({ dir, db, sides, checkpointer, filling }: Parts) {
    this.db = db
    this.#sides = sides
    if (filling) {
      const { leaves } = filling
      this.#rarely = new RareCommits(db, () => (leaves === null ? undefined : boundSize(db, dir, leaves)))
    }
    this.registry = new Registry(db)
    const fullBytes = filling ? Infinity : WAL_FULL_BYTES
    this.#wal = new WalKeeper(db, fileIn(dir), checkpointer, { fullBytes, syncs: !filling })
  }

  /** Returns the table of a version with the indexes that it has. A new version gets a table. */
  open(spec: CollectionSpec): Table {
    const name = tableName(spec)
    const known = this.#opened.get(name)
    if (known) return known
    const found = this.registry.find(spec) ?? this.registry.add(spec)
    const { spec: created, stored_as, side, is_filling } = found
    if (is_filling) throw new AppError('unavailable', `A thread fills the read model ${name}`)
    const rarely = this.#rarely && { commits: this.#rarely, isIndexedLater: true }
    const table =
      side === null
        ? new Table(this.db, created, stored_as, rarely)
        : this.#sides.tableOf(side, { indexes: created.indexes, stored_as })
    this.#opened.set(name, table)
    if (this.#rarely) this.#late.set(table, new LateWrites(table, this.#rarely))
    return table
  }

  /** The writes of a thread to a table; undefined: they are stored at once. */
  lateWritesTo(table: Table): LateWrites | undefined {
    return this.#late.get(table)
  }

  opened(version: Version): Table | undefined {
    return this.#opened.get(tableName(version))
  }

  /** The version has no table any more, or another one. */
  forget(version: Version): void {
    this.#opened.delete(tableName(version))
  }

  /** Whether a thread fills the version. */
  isApart(spec: CollectionSpec): boolean {
    return !this.opened(spec) && this.registry.find(spec)?.is_filling === true
  }

  /** Counts the approximate size of a commit. */
  wrote({ db }: Table, bytes: number): void {
    this.walOf(db).wrote(bytes)
  }

  walOf(db: DatabaseSync): WalKeeper {
    return this.#sides.walOf(db) ?? this.#wal
  }

  /** Commits what a thread has written, and creates its indexes. Each of them reads the whole file, so it is mapped. */
  complete(): void {
    this.#rarely?.end()
    this.db.exec(`PRAGMA mmap_size=${MAPPED_BYTES}`)
    for (const table of this.#opened.values()) table.createIndexes(() => this.#rarely?.bound())
  }

  /** Ends the background work on the file. */
  leave(): void {
    this.#wal.close()
  }

  close(): void {
    try {
      this.#rarely?.end()
    } finally {
      this.db.close()
    }
  }
}
