import type { DatabaseSync } from 'node:sqlite'
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
  Version,
  WritableCollection,
  Write,
} from '../../../ports/readModels.ts'
import { slices } from '../../../loops/slices.ts'
import { refuseUndeclared } from '../../shared/declared.ts'
import { droppedError } from '../../shared/dropped.ts'
import { openCheckpointer } from '../checkpointer.ts'
import { markDamaged, type OnDiscarded } from '../disposableFile.ts'
import { isDamage, isFaultOfFile, unavailable } from '../sqlite.ts'
import { WalKeeper } from '../walKeeper.ts'
import { dropSlowly } from './dropping.ts'
import { fileIn, openFile, renewFile } from './file.ts'
import { countOf, entriesOf, rowsOf } from './rows.ts'
import { Registry } from './registry.ts'
import { Table, tableName } from './table.ts'

export type { Discarded } from '../disposableFile.ts'

/** A document changes about one page; it shares the pages of indexes with others of its batch. */
const PAGE_BYTES = 4096
const WAL_FULL_BYTES = 32 << 20

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
  /** The tables that this process dropped or renamed. An empty one in their place would look like a read model without documents. */
  readonly #dropped = new Set<string>()
  readonly #closing = new AbortController()
  #db: DatabaseSync
  #registry: Registry
  #wal: WalKeeper
  #dropping: Promise<void> = Promise.resolve()
  #leaving = new AbortController()

  constructor(dir: string, onDiscarded: OnDiscarded) {
    this.#dir = dir
    this.#onDiscarded = onDiscarded
    this.#db = openFile(dir, onDiscarded)
    this.#registry = new Registry(this.#db)
    this.#wal = this.#keepWal()
    // Damage of the newest versions is found here, where the file can still be replaced.
    for (const spec of this.#registry.newest()) this.#open(spec)
    for (const stored_as of this.#registry.replaced())
      void this.#dropLater(() => this.#dropReplaced({ stored_as }))
  }

  #keepWal(): WalKeeper {
    return new WalKeeper(this.#db, fileIn(this.#dir), this.#checkpointer, { fullBytes: WAL_FULL_BYTES })
  }

  reader<D extends Doc>(spec: CollectionSpec): Collection<D> {
    return this.#collection<D>(spec, () => {
      if (this.#dropped.has(tableName(spec))) throw droppedError(spec)
      return this.#open(spec)
    })
  }

  async writer<D extends Doc>(spec: CollectionSpec): Promise<WritableCollection<D>> {
    const table = this.#guard(() => this.#open(spec))
    if (JSON.stringify(table.spec.indexes) !== JSON.stringify(spec.indexes)) {
      throw new Error(
        `Expected collection ${tableName(spec)} with the indexes that it was created with: raise its version`,
      )
    }
    const refuse = (error: unknown) => this.#refuse(error)
    return {
      ...this.#collection<D>(spec, () => table),
      entries: async function* () {
        try {
          for await (const [id, stored] of entriesOf(table)) yield [id, stored as Stored<D>] as const
        } catch (error) {
          refuse(error)
        }
      },
      stored: async (ids) => this.#guard(() => byId(ids, (id) => table.stored(id))) as Map<string, Stored<D>>,
      write: (writes, checkpoint, { summaries = [] } = {}) =>
        this.#write(table, summaries.length > 0 ? [...summaries, ...writes] : writes, checkpoint),
    }
  }

  /** Writes the last slice with the checkpoint. Other work continues between slices. */
  async #write(table: Table, writes: readonly Write[], checkpoint: Cursor): Promise<void> {
    let at = 0
    do {
      const wait = slices.take()
      if (wait) await wait
      const milliseconds = slices.left
      const next = this.#guard(() => table.write(writes, checkpoint, { at, milliseconds }))
      this.#wal.wrote((next - at + 4) * PAGE_BYTES)
      at = next
    } while (at < writes.length)
  }

  async versions(): Promise<readonly Version[]> {
    return this.#guard(() => this.#registry.versions())
  }

  /** Drops one table at a time, between other work. No other process reads the file, so nothing is asked twice. */
  async drop(version: Version, isUnread: () => Promise<boolean>): Promise<void> {
    if (await isUnread()) await this.#dropLater(() => this.#drop(version))
  }

  #dropLater(drop: () => Promise<void>): Promise<void> {
    this.#dropping = this.#dropping.then(drop).catch((error: unknown) => this.#noteDamage(error))
    return this.#dropping
  }

  /** The version gets the other table in one transaction. Its former table is dropped slowly, also after a crash. */
  async replace(version: Version, by: Version, isUnread?: () => Promise<boolean>): Promise<boolean> {
    if (isUnread && !(await isUnread())) return false
    const former = this.#guard(() => {
      const stored_as = this.#registry.replace(version, by)
      if (stored_as === null) return null
      const table = this.#tables.get(tableName(version))
      this.#tables.delete(tableName(version))
      this.#tables.delete(tableName(by))
      this.#dropped.add(tableName(by))
      return { stored_as, table }
    })
    if (former) void this.#dropLater(() => this.#dropReplaced(former))
    return true
  }

  async source(): Promise<FoldedLog> {
    return this.#guard(() => this.#registry.source())
  }

  async assign(log_id: string): Promise<void> {
    this.#guard(() => this.#registry.assign(log_id))
  }

  async countAfter(cursor: Cursor): Promise<number> {
    return this.#guard(() => {
      let count = 0
      for (const spec of this.#registry.begun()) count += this.#open(spec).countAfter(cursor)
      return count
    })
  }

  async restart(log_id: string): Promise<void> {
    await this.#leave()
    this.#guard(() => {
      this.#db.close()
      this.#tables.clear()
      this.#db = renewFile(this.#dir, 'they belong to another log', this.#onDiscarded)
      this.#registry = new Registry(this.#db)
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
      return this.#guard(() => tableNow().find(query))
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
          for await (const doc of rows) yield doc as D
        } catch (error) {
          refuse(error)
        }
      },
      checkpoint: async () => this.#guard(() => tableNow().checkpoint()),
      count: async () => {
        try {
          return await countOf(table())
        } catch (error) {
          return refuse(error)
        }
      },
    }
  }

  /** Returns the table of a version with its original indexes. A new version gets a table. */
  #open(spec: CollectionSpec): Table {
    const name = tableName(spec)
    const known = this.#tables.get(name)
    if (known) return known
    const { spec: created, stored_as } = this.#registry.find(spec) ?? this.#registry.add(spec)
    const table = new Table(this.#db, created, stored_as)
    this.#tables.set(name, table)
    return table
  }

  async #dropReplaced({ stored_as, table }: { stored_as: string; table?: Table | undefined }): Promise<void> {
    const { signal } = this.#leaving
    await table?.unread(signal)
    await dropSlowly(this.#db, stored_as, signal)
    if (!signal.aborted) this.#registry.forgetReplaced(stored_as)
  }

  async #drop(version: Version): Promise<void> {
    const { signal } = this.#leaving
    const { stored_as = tableName(version) } = this.#registry.find(version) ?? {}
    await this.#tables.get(tableName(version))?.unread(signal)
    this.#tables.delete(tableName(version))
    this.#dropped.add(tableName(version))
    await dropSlowly(this.#db, stored_as, signal)
    if (!signal.aborted) this.#registry.remove(version)
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
