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
import { syncFileNow } from '../../../disk/sync.ts'
import { slices } from '../../../loops/slices.ts'
import { isIndexed, refuseUndeclared, sameIndexes } from '../../shared/declared.ts'
import { droppedError } from '../../shared/dropped.ts'
import { scanFor } from '../../shared/scanFor.ts'
import { openCheckpointer } from '../checkpointer.ts'
import { markDamaged, type OnDiscarded } from '../disposableFile.ts'
import { isDamage, isFaultOfFile, unavailable } from '../sqlite.ts'
import { WalKeeper } from '../walKeeper.ts'
import { dropSlowly } from './dropping.ts'
import { fileIn, openFile, renewFile } from './file.ts'
import { countOf, entriesOf, rowsOf } from './rows.ts'
import { Registry } from './registry.ts'
import { SideFiles } from './sideFiles.ts'
import { Table, tableName } from './table.ts'

export type { Discarded } from '../disposableFile.ts'

/** A document changes about one page; it shares the pages of indexes with others of its batch. */
const PAGE_BYTES = 4096
const WAL_FULL_BYTES = 32 << 20

/**
 * The settings while a thread fills a file: pages are written once and without syncs. After kill -9 the file is whole. After a
 * power cut it may not be, so it is filled again.
 */
const FILLING = 'PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE'

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

/**
 * Opens a side file in a thread that fills it. `complete` creates the indexes and closes the file, which is durable
 * afterwards. One thread at a time.
 */
export const openSideFile = (dir: string): { readModels: ReadModels; complete: () => Promise<void> } => {
  const readModels = new EmbeddedReadModels(dir, () => {}, true)
  return {
    readModels,
    async complete() {
      readModels.createIndexes()
      await readModels.close()
      syncFileNow(fileIn(dir))
    },
  }
}

class EmbeddedReadModels implements ReadModels {
  readonly #dir: string
  readonly #onDiscarded: OnDiscarded
  /** A thread fills it: no other connection uses the file. */
  readonly #isFilling: boolean
  readonly #checkpointer = openCheckpointer()
  readonly #sides: SideFiles
  readonly #tables = new Map<string, Table>()
  /** The tables that this process dropped or renamed. An empty one in their place would look like a read model without documents. */
  readonly #dropped = new Set<string>()
  readonly #closing = new AbortController()
  #db: DatabaseSync
  #registry: Registry
  #wal: WalKeeper
  #dropping: Promise<void> = Promise.resolve()
  #leaving = new AbortController()

  constructor(dir: string, onDiscarded: OnDiscarded, isFilling = false) {
    this.#dir = dir
    this.#onDiscarded = onDiscarded
    this.#isFilling = isFilling
    this.#sides = new SideFiles(dir, this.#checkpointer)
    this.#db = openFile(dir, onDiscarded)
    if (isFilling) this.#db.exec(FILLING)
    this.#registry = new Registry(this.#db)
    this.#wal = this.#keepWal()
    this.#sides.removeOthers(new Set(this.#registry.sides().map(({ side }) => side ?? '')))
    // Damage of the newest versions is found here, where the file can still be replaced.
    for (const spec of this.#registry.newest()) this.#open(spec)
    for (const stored_as of this.#registry.replaced())
      void this.#dropLater(() => this.#dropReplaced({ stored_as }))
  }

  createIndexes(): void {
    for (const table of this.#tables.values()) this.#guard(() => table.createIndexes())
  }

  readonly apart = {
    begin: (spec: CollectionSpec): string | null =>
      this.#guard(() => {
        const known = this.#registry.find(spec)
        if (known) return known.is_filling && known.side !== null ? this.#sides.continued(known.side) : null
        const side = this.#sides.create()
        this.#registry.addFilling(spec, side)
        return this.#sides.folderOf(side)
      }),
    end: (version: Version): void =>
      this.#guard(() => {
        const { side } = this.#registry.find(version) ?? {}
        if (side) this.#sides.settle(side)
        this.#registry.filled(version)
      }),
  }

  #keepWal(): WalKeeper {
    const fullBytes = this.#isFilling ? Infinity : WAL_FULL_BYTES
    return new WalKeeper(this.#db, fileIn(this.#dir), this.#checkpointer, { fullBytes })
  }

  reader<D extends Doc>(spec: CollectionSpec): Collection<D> {
    return this.#collection<D>(spec, () => {
      if (this.#dropped.has(tableName(spec))) throw droppedError(spec)
      return this.#open(spec)
    })
  }

  async writer<D extends Doc>(spec: CollectionSpec): Promise<WritableCollection<D>> {
    const table = this.#guard(() => this.#open(spec))
    if (!sameIndexes(this.#guard(() => this.#registry.find(spec))?.declared ?? [], spec.indexes)) {
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
      this.#walOf(table).wrote((next - at + 4) * PAGE_BYTES)
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
      const row = this.#registry.replace(version, by)
      if (row === null) return null
      const table = this.#tables.get(tableName(version))
      this.#tables.delete(tableName(version))
      this.#tables.delete(tableName(by))
      this.#dropped.add(tableName(by))
      return { ...row, table }
    })
    if (former) void this.#dropLater(() => this.#dropReplaced(former))
    return true
  }

  async source(): Promise<FoldedLog> {
    return this.#guard(() => {
      const { log_id, checkpoint } = this.#registry.source()
      const filled = this.#registry.sides().filter(({ is_filling }) => !is_filling)
      const others = filled.map(({ spec }) => this.#open(spec).checkpoint() ?? '')
      const newest = others.reduce((a, b) => (a > b ? a : b), checkpoint ?? '')
      return { log_id, checkpoint: newest === '' ? checkpoint : newest }
    })
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
      this.#sides.close()
      this.#sides.removeOthers(new Set())
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
    this.#sides.close()
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
    const refuse = (error: unknown) => this.#refuse(error)
    /** The table that was found to have all indexes. */
    let indexed: Table | undefined
    const find = async (query: Query): Promise<Found<Doc>> => {
      refuseUndeclared(spec, query)
      const seen = table()
      if (seen !== indexed && sameIndexes(seen.spec.indexes, spec.indexes)) indexed = seen
      if (seen === indexed || isIndexed(seen.spec, query)) return this.#guard(() => seen.find(query))
      try {
        return await scanFor(query, entriesOf(seen))
      } catch (error) {
        return refuse(error)
      }
    }
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
      checkpoint: async () => this.#guard(() => (this.#isApart(spec) ? null : tableNow().checkpoint())),
      count: async () => {
        if (this.#isApart(spec)) return 0
        try {
          return await countOf(table())
        } catch (error) {
          return refuse(error)
        }
      },
    }
  }

  /** Returns the table of a version with the indexes that it has. A new version gets a table. */
  #open(spec: CollectionSpec): Table {
    const name = tableName(spec)
    const known = this.#tables.get(name)
    if (known) return known
    const {
      spec: created,
      stored_as,
      side,
      is_filling,
    } = this.#registry.find(spec) ?? this.#registry.add(spec)
    if (is_filling) throw new AppError('unavailable', `A thread fills the read model ${name}`)
    const options = { isIndexedLater: this.#isFilling }
    const table =
      side === null
        ? new Table(this.#db, created, stored_as, options)
        : this.#sides.tableOf(side, { indexes: created.indexes, stored_as })
    this.#tables.set(name, table)
    return table
  }

  #isApart(spec: CollectionSpec): boolean {
    return !this.#tables.has(tableName(spec)) && this.#registry.find(spec)?.is_filling === true
  }

  #walOf({ db }: Table): WalKeeper {
    return this.#sides.walOf(db) ?? this.#wal
  }

  async #dropReplaced({
    stored_as,
    side = null,
    table,
  }: {
    stored_as: string
    side?: string | null
    table?: Table | undefined
  }): Promise<void> {
    const { signal } = this.#leaving
    await table?.unread(signal)
    if (side !== null) return signal.aborted ? undefined : this.#sides.remove(side)
    await dropSlowly(this.#db, stored_as, signal)
    if (!signal.aborted) this.#registry.forgetReplaced(stored_as)
  }

  async #drop(version: Version): Promise<void> {
    const { signal } = this.#leaving
    const found = this.#registry.find(version)
    const { stored_as = tableName(version), side = null } = found ?? {}
    await this.#tables.get(tableName(version))?.unread(signal)
    this.#tables.delete(tableName(version))
    if (!found?.is_filling) this.#dropped.add(tableName(version)) // no reader has seen one that a thread fills
    if (side === null) await dropSlowly(this.#db, stored_as, signal)
    if (signal.aborted) return
    this.#registry.remove(version)
    if (side !== null) await this.#sides.remove(side)
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
