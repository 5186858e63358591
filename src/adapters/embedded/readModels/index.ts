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
import { isDamage, isFaultOfFile, transaction, unavailable } from '../sqlite.ts'
import { WalKeeper } from '../walKeeper.ts'
import { dropSlowly } from './dropping.ts'
import { fileIn, openFile, renewFile } from './file.ts'
import { countOf, entriesOf, rowsOf } from './rows.ts'
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

/** A row of `collections`. */
type Registered = {
  readonly spec: string
  /** The name of its table. */
  readonly stored_as: string
  readonly checkpoint: Cursor | null
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
  #wal: WalKeeper
  #dropping: Promise<void> = Promise.resolve()
  #leaving = new AbortController()

  constructor(dir: string, onDiscarded: OnDiscarded) {
    this.#dir = dir
    this.#onDiscarded = onDiscarded
    this.#db = openFile(dir, onDiscarded)
    this.#wal = this.#keepWal()
    // Damage of the newest versions is found here, where the file can still be replaced.
    const rows = this.#db.prepare('SELECT spec, max(version) FROM collections GROUP BY name').all()
    for (const { spec } of rows) this.#open(JSON.parse(String(spec)) as CollectionSpec)
    for (const { stored_as } of this.#db.prepare('SELECT stored_as FROM replaced').all())
      void this.#dropLater(() => this.#dropReplaced({ stored_as: String(stored_as) }))
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
    return this.#guard(() =>
      this.#db
        .prepare('SELECT name, version FROM collections')
        .all()
        .map(({ name, version }) => ({ name: String(name), version: Number(version) })),
    )
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
      const [current, next] = [version, by].map((each) => this.#registered(each))
      if (!current || !next) return null
      transaction(this.#db, () => {
        this.#db.prepare('DELETE FROM collections WHERE name = ? AND version = ?').run(by.name, by.version)
        this.#db
          .prepare('UPDATE collections SET stored_as = ?, checkpoint = ? WHERE name = ? AND version = ?')
          .run(next.stored_as, next.checkpoint, version.name, version.version)
        this.#db.prepare('INSERT INTO replaced VALUES (?)').run(current.stored_as)
      })
      const table = this.#tables.get(tableName(version))
      this.#tables.delete(tableName(version))
      this.#tables.delete(tableName(by))
      this.#dropped.add(tableName(by))
      return { stored_as: current.stored_as, table }
    })
    if (former) void this.#dropLater(() => this.#dropReplaced(former))
    return true
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
    const row = this.#registered(spec) ?? this.#register(spec)
    const table = new Table(this.#db, JSON.parse(row.spec) as CollectionSpec, row.stored_as)
    this.#tables.set(name, table)
    return table
  }

  #registered({ name, version }: Version): Registered | undefined {
    return this.#db
      .prepare('SELECT spec, stored_as, checkpoint FROM collections WHERE name = ? AND version = ?')
      .get(name, version) as Registered | undefined
  }

  #register(spec: CollectionSpec): Registered {
    const { name, version, indexes } = spec
    const taken = this.#db.prepare(
      'SELECT 1 FROM collections WHERE stored_as = ?1 UNION SELECT 1 FROM replaced WHERE stored_as = ?1',
    )
    let stored_as = tableName(spec)
    for (let n = 2; taken.get(stored_as); n++) stored_as = `${tableName(spec)}_${n}` // a rebuild took the name
    const row = { spec: JSON.stringify({ name, version, indexes }), stored_as, checkpoint: null }
    this.#db
      .prepare('INSERT INTO collections (name, version, spec, stored_as) VALUES (?, ?, ?, ?)')
      .run(name, version, row.spec, stored_as)
    return row
  }

  async #dropReplaced({ stored_as, table }: { stored_as: string; table?: Table | undefined }): Promise<void> {
    const { signal } = this.#leaving
    await table?.unread(signal)
    await dropSlowly(this.#db, stored_as, signal)
    if (!signal.aborted) this.#db.prepare('DELETE FROM replaced WHERE stored_as = ?').run(stored_as)
  }

  async #drop(version: Version): Promise<void> {
    const { signal } = this.#leaving
    const row = this.#registered(version)
    await this.#tables.get(tableName(version))?.unread(signal)
    this.#tables.delete(tableName(version))
    this.#dropped.add(tableName(version))
    await dropSlowly(this.#db, row?.stored_as ?? tableName(version), signal)
    if (signal.aborted) return
    this.#db
      .prepare('DELETE FROM collections WHERE name = ? AND version = ?')
      .run(version.name, version.version)
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
