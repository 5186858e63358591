import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { AppError } from '../../../errors.ts'
import type { Cursor } from '../../../events/event.ts'
import type {
  Collection,
  CollectionSpec,
  Doc,
  FoldedLog,
  Found,
  Query,
  ReadModels,
  Stored,
  WritableCollection,
  Write,
} from '../../../ports/readModels.ts'
import { refuseUndeclared } from '../../shared/declared.ts'
import { findUnindexed } from '../../shared/unindexed.ts'
import { openCheckpointer } from '../checkpointer.ts'
import { markDamaged, type OnDiscarded } from '../disposableFile.ts'
import { isDamage, isFaultOfFile, transaction, unavailable } from '../sqlite.ts'
import { WalKeeper } from '../walKeeper.ts'
import { dropSlowly } from './dropping.ts'
import { fileIn, openFile, renewFile } from './file.ts'
import { rowsOf } from './rows.ts'
import { Table, tableName } from './table.ts'

export type { Discarded } from '../disposableFile.ts'

/** A document changes about one page; it shares the pages of indexes with others of its batch. */
const PAGE_BYTES = 4096
const WAL_FULL_BYTES = 32 << 20

/** The time for which documents are written before other work continues, milliseconds. */
const SLICE_MS = 2

interface Options {
  readonly dir: string
  /** Called when the file was unusable and replaced by a new one: every collection must be filled again (I8). */
  readonly onDiscarded?: OnDiscarded
}

/** Opens read models in `<dir>/read-models.db`. One process at a time. */
export const openReadModels = ({ dir, onDiscarded = () => {} }: Options): ReadModels => {
  try {
    return new EmbeddedReadModels(dir, onDiscarded)
  } catch (error) {
    if (!isFaultOfFile(error)) throw unavailable(error)
    markDamaged(fileIn(dir))
    return new EmbeddedReadModels(dir, onDiscarded)
  }
}

class EmbeddedReadModels implements ReadModels {
  readonly #dir: string
  readonly #onDiscarded: OnDiscarded
  readonly #checkpointer = openCheckpointer()
  readonly #tables = new Map<string, Table>()
  /** The live version by collection. */
  readonly #live = new Map<string, Table>()
  readonly #closing = new AbortController()
  #db: DatabaseSync
  #wal: WalKeeper
  #dropping: Promise<void> = Promise.resolve()
  /** Whether a slice was written in this turn of the event loop: the projectors share one in each turn. */
  #hasWritten = false
  #leaving = new AbortController()

  constructor(dir: string, onDiscarded: OnDiscarded) {
    this.#dir = dir
    this.#onDiscarded = onDiscarded
    this.#db = openFile(dir, onDiscarded)
    this.#wal = this.#keepWal()
    const rows = this.#db
      .prepare('SELECT spec, max(version) FROM collections WHERE live = 1 GROUP BY name')
      .all()
    for (const { spec } of rows) {
      const table = this.#open(JSON.parse(String(spec)) as CollectionSpec)
      this.#live.set(table.spec.name, table)
    }
    for (const table of this.#live.values()) this.#dropOlder(table.spec)
  }

  #keepWal(): WalKeeper {
    return new WalKeeper(this.#db, fileIn(this.#dir), this.#checkpointer, { fullBytes: WAL_FULL_BYTES })
  }

  reader<D extends Doc>(spec: CollectionSpec): Collection<D> {
    return this.#collection<D>(spec, () => this.#live.get(spec.name) ?? this.#open(spec))
  }

  async writer<D extends Doc>(spec: CollectionSpec): Promise<WritableCollection<D>> {
    const table = this.#guard(() => this.#open(spec))
    if (JSON.stringify(table.spec.indexes) !== JSON.stringify(spec.indexes)) {
      throw new Error(
        `Expected collection ${tableName(spec)} with the indexes that it was created with: raise its version`,
      )
    }
    return {
      ...this.#collection<D>(spec, () => table),
      stored: async (ids) => this.#guard(() => byId(ids, (id) => table.stored(id))) as Map<string, Stored<D>>,
      write: (writes, checkpoint) => this.#write(table, writes, checkpoint),
    }
  }

  /**
   * Writes the last slice with the checkpoint. Other work continues between slices. While nothing can be read, because no
   * version is live, there is one slice.
   */
  async #write(table: Table, writes: readonly Write[], checkpoint: Cursor): Promise<void> {
    const milliseconds = this.#live.has(table.spec.name) ? SLICE_MS : Infinity
    let at = 0
    do {
      while (this.#hasWritten) await turn()
      this.#hasWritten = true
      setImmediate(() => (this.#hasWritten = false))
      const next = this.#guard(() => table.write(writes, checkpoint, { at, milliseconds }))
      this.#wal.wrote((next - at + 4) * PAGE_BYTES)
      at = next
    } while (at < writes.length)
  }

  async goLive(spec: CollectionSpec): Promise<void> {
    const live = this.#live.get(spec.name)
    if (live && live.spec.version >= spec.version) return
    this.#guard(() => {
      const table = this.#open(spec)
      this.#db
        .prepare('UPDATE collections SET live = 1 WHERE name = ? AND version = ?')
        .run(spec.name, spec.version)
      this.#live.set(spec.name, table)
    })
    this.#dropOlder(spec)
  }

  async source(): Promise<FoldedLog> {
    return this.#guard(() => {
      const { log_id } = this.#db.prepare('SELECT log_id FROM identity').get() ?? {}
      const { newest } = this.#db.prepare('SELECT max(checkpoint) AS newest FROM collections').get() ?? {}
      return {
        log_id: typeof log_id === 'string' ? log_id : null,
        checkpoint: typeof newest === 'string' ? newest : null,
      }
    })
  }

  async assign(log_id: string): Promise<void> {
    this.#guard(() =>
      transaction(this.#db, () => {
        this.#db.exec('DELETE FROM identity')
        this.#db.prepare('INSERT INTO identity VALUES (?)').run(log_id)
      }),
    )
  }

  async countAfter(cursor: Cursor): Promise<number> {
    return this.#guard(() => {
      let count = 0
      for (const row of this.#db.prepare(`SELECT spec FROM collections WHERE checkpoint > ''`).all())
        count += this.#open(JSON.parse(String(row['spec'])) as CollectionSpec).countAfter(cursor)
      return count
    })
  }

  async restart(log_id: string): Promise<void> {
    await this.#leave()
    this.#guard(() => {
      this.#db.close()
      this.#tables.clear()
      this.#live.clear()
      this.#db = renewFile(this.#dir, 'they belong to another log', this.#onDiscarded)
      this.#wal = this.#keepWal()
      this.#leaving = new AbortController()
    })
    await this.assign(log_id)
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    await this.#leave()
    await this.#checkpointer.close()
    this.#db.close()
  }

  /** Ends the background work on the file. */
  async #leave(): Promise<void> {
    this.#leaving.abort()
    await this.#dropping
    this.#wal.close()
  }

  #collection<D extends Doc>(spec: CollectionSpec, tableNow: () => Table): Collection<D> {
    const table = () => this.#guard(tableNow)
    const find = async (query: Query): Promise<Found<Doc>> => {
      refuseUndeclared(spec, query)
      const seen = table()
      const page = this.#guard(() => seen.find(query))
      return page ?? findUnindexed(rowsOf(seen), query).catch((error: unknown) => this.#refuse(error))
    }
    const refuse = (error: unknown) => this.#refuse(error)
    return {
      get: async (id) => this.#guard(() => tableNow().get(id)) as D | null,
      getMany: async (ids) => {
        const seen = table()
        return this.#guard(() => byId(ids, (id) => seen.get(id))) as Map<string, D>
      },
      find: find as Collection<D>['find'],
      scan: async function* () {
        const rows = rowsOf(table())
        try {
          for await (const { doc } of rows) yield doc as D
        } catch (error) {
          refuse(error)
        }
      },
      checkpoint: async () => this.#guard(() => tableNow().checkpoint()),
    }
  }

  /** Returns the table of a version with its original indexes. A new version gets a table. */
  #open(spec: CollectionSpec): Table {
    const name = tableName(spec)
    const known = this.#tables.get(name)
    if (known) return known
    const { version, indexes } = spec
    this.#db
      .prepare('INSERT INTO collections (name, version, spec) VALUES (?, ?, ?) ON CONFLICT DO NOTHING')
      .run(spec.name, version, JSON.stringify({ name: spec.name, version, indexes }))
    const row = this.#db
      .prepare('SELECT spec FROM collections WHERE name = ? AND version = ?')
      .get(spec.name, version)
    const table = new Table(this.#db, JSON.parse(String(row?.['spec'])) as CollectionSpec)
    this.#tables.set(name, table)
    return table
  }

  /** Drops tables after all other work, one at a time. */
  #dropOlder({ name, version }: CollectionSpec): void {
    const rows = this.#db
      .prepare('SELECT version FROM collections WHERE name = ? AND version < ?')
      .all(name, version)
    for (const row of rows) {
      const old = { name, version: Number(row['version']) }
      this.#dropping = this.#dropping
        .then(() => this.#drop(old))
        .catch((error: unknown) => this.#noteDamage(error))
    }
  }

  async #drop(old: { name: string; version: number }): Promise<void> {
    const { signal } = this.#leaving
    const table = this.#tables.get(tableName(old))
    await table?.unread(signal)
    this.#tables.delete(tableName(old))
    await dropSlowly(this.#db, tableName(old), signal)
    if (signal.aborted) return
    this.#db.prepare('DELETE FROM collections WHERE name = ? AND version = ?').run(old.name, old.version)
  }

  #guard<T>(work: () => T): T {
    if (this.#closing.signal.aborted) throw new AppError('unavailable', 'The read models are closed')
    try {
      return work()
    } catch (error) {
      return this.#refuse(error)
    }
  }

  #refuse(error: unknown): never {
    this.#noteDamage(error)
    const cause = error instanceof AppError ? error.cause : error
    throw cause instanceof TypeError ? cause : unavailable(error) // no retry helps for a document that cannot be stored
  }

  /** Marks a damaged file, which is discarded at the next open. */
  #noteDamage(error: unknown): void {
    if (isDamage(error)) markDamaged(fileIn(this.#dir))
  }
}

const byId = <T>(ids: readonly string[], read: (id: string) => T | null): Map<string, T> => {
  const found = new Map<string, T>()
  for (const id of ids) {
    const value = read(id)
    if (value !== null) found.set(id, value)
  }
  return found
}
