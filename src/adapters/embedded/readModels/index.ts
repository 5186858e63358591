import type { Cursor } from '../../../events/event.ts'
import type {
  Collection,
  CollectionSpec,
  Doc,
  FoldedLog,
  ReadModels,
  Stored,
  Version,
  WritableCollection,
  Write,
} from '../../../ports/readModels.ts'
import { freeBytes } from '../../../disk/freeBytes.ts'
import { syncFileNow } from '../../../disk/sync.ts'
import { slices } from '../../../loops/slices.ts'
import { sameIndexes } from '../../shared/declared.ts'
import { droppedError } from '../../shared/dropped.ts'
import { openCheckpointer } from '../checkpointer.ts'
import { Damage, markDamaged, type OnDamaged, type OnDiscarded } from '../disposableFile.ts'
import { isFaultOfFile, unavailable } from '../sqlite.ts'
import { byId, collectionOf } from './collection.ts'
import { fileIn, openFile, renewFile } from './file.ts'
import { FullDisk } from './fullDisk.ts'
import { Guard } from './guard.ts'
import { Removals } from './removals.ts'
import { entriesOf } from './rows.ts'
import { SideFiles } from './sideFiles.ts'
import { type Table, tableName } from './table.ts'
import { type Filling, Tables } from './tables.ts'

export type { Discarded } from '../disposableFile.ts'

/** A document changes about one page; it shares the pages of indexes with others of its batch. */
const PAGE_BYTES = 4096

interface Options {
  readonly dir: string
  /** Called when the file was unusable and replaced by a new one: every collection must be filled again (I8). */
  readonly onDiscarded?: OnDiscarded
  /** Called when the file, or one beside it, was found damaged. */
  readonly onDamaged?: OnDamaged
  /** Called with the reason when writes are refused (disk full), and with null when they were not for a while. */
  readonly onRefusing?: (reason: string | null) => void
}

/** Opens read models in `<dir>/read-models.db`. One process at a time. */
export const openReadModels = ({ dir, ...given }: Options): ReadModels => {
  const open = () => new EmbeddedReadModels({ dir, ...given })
  try {
    return open()
  } catch (error) {
    if (!isFaultOfFile(error)) throw unavailable(error)
    markDamaged(fileIn(dir))
    return open()
  }
}

/**
 * Opens a side file in a thread that fills it. `complete` creates the indexes and closes the file, which is durable
 * afterwards. One thread at a time. Writes fail as on a full disk before they use the last `leaves` bytes of it.
 */
export const openSideFile = (
  dir: string,
  { leaves = null }: { readonly leaves?: number | null } = {},
): { readModels: ReadModels; complete: () => Promise<void> } => {
  const readModels = new EmbeddedReadModels({ dir, filling: { leaves } })
  return {
    readModels,
    async complete() {
      readModels.complete()
      await readModels.close()
      syncFileNow(fileIn(dir))
    },
  }
}

class EmbeddedReadModels implements ReadModels {
  readonly #dir: string
  readonly #onDiscarded: OnDiscarded
  readonly #filling: Filling | undefined
  readonly #guard: Guard
  readonly #checkpointer = openCheckpointer()
  readonly #sides: SideFiles
  /** The tables that this process dropped or renamed. An empty one in their place would look like a read model without documents. */
  readonly #dropped = new Set<string>()
  #tables: Tables
  #removals: Removals

  constructor({
    dir,
    onDiscarded = () => {},
    onDamaged = () => {},
    onRefusing = () => {},
    filling,
  }: Options & { readonly filling?: Filling }) {
    this.#dir = dir
    this.#onDiscarded = onDiscarded
    this.#filling = filling
    this.#guard = new Guard(new Damage(fileIn(dir), onDamaged), new FullDisk(onRefusing))
    this.#sides = new SideFiles(dir, this.#checkpointer)
    this.#tables = this.#tablesIn(openFile(dir, onDiscarded))
    this.#removals = this.#removalsNow()
    const { registry } = this.#tables
    this.#sides.removeOthers(new Set(registry.sides().map(({ side }) => side ?? '')))
    // Damage of the newest versions is found here, where the file can still be replaced.
    for (const spec of registry.newest()) this.#tables.open(spec)
    for (const stored_as of registry.replaced()) void this.#removals.replaced({ stored_as })
    if (!filling) this.#removals.shrink(this.#tables) // a crash may have left free pages
  }

  #tablesIn(db: Tables['db']): Tables {
    const [dir, sides, checkpointer, filling] = [this.#dir, this.#sides, this.#checkpointer, this.#filling]
    return new Tables({ dir, db, sides, checkpointer, filling })
  }

  #removalsNow(): Removals {
    const [tables, sides, guard, dropped] = [this.#tables, this.#sides, this.#guard, this.#dropped]
    return new Removals({ tables, sides, guard, dropped })
  }

  /** Commits what a thread has written, and creates its indexes. */
  complete(): void {
    this.#guard.run(() => this.#tables.complete())
  }

  readonly apart = {
    begin: (spec: CollectionSpec): string | null =>
      this.#guard.run(() => {
        const { registry } = this.#tables
        const known = registry.find(spec)
        if (known) return known.is_filling && known.side !== null ? this.#sides.continued(known.side) : null
        const side = this.#sides.create()
        registry.addFilling(spec, side)
        return this.#sides.folderOf(side)
      }),
    end: (version: Version): void =>
      this.#guard.run(() => {
        const { registry } = this.#tables
        const { side } = registry.find(version) ?? {}
        if (side) this.#sides.settle(side)
        registry.filled(version)
      }),
  }

  reader<D extends Doc>(spec: CollectionSpec): Collection<D> {
    return this.#collection<D>(spec, () => {
      if (this.#dropped.has(tableName(spec))) throw droppedError(spec)
      const table = this.#tables.open(spec)
      return this.#tables.lateWritesTo(table)?.flushed() ?? table
    })
  }

  async writer<D extends Doc>(spec: CollectionSpec): Promise<WritableCollection<D>> {
    const guard = this.#guard
    const table = guard.run(() => this.#tables.open(spec))
    if (!sameIndexes(guard.run(() => this.#tables.registry.find(spec))?.declared ?? [], spec.indexes)) {
      throw new Error(
        `Expected collection ${tableName(spec)} with the indexes that it was created with: raise its version`,
      )
    }
    const late = this.#tables.lateWritesTo(table)
    const tableNow = () => late?.flushed() ?? table
    return {
      ...this.#collection<D>(spec, tableNow),
      entries: async function* () {
        try {
          for await (const [id, stored] of entriesOf(guard.run(tableNow)))
            yield [id, stored as Stored<D>] as const
        } catch (error) {
          guard.refuse(error)
        }
      },
      stored: async (ids) =>
        guard.run(() => byId(ids, (id) => (late ?? table).stored(id))) as Map<string, Stored<D>>,
      write: async (writes, checkpoint, { summaries = [] } = {}) => {
        const all = summaries.length > 0 ? [...summaries, ...writes] : writes
        if (late) guard.run(() => late.add(all, checkpoint))
        else await this.#write(table, all, checkpoint)
      },
      forgetRemovals: async (upTo) => (late ? 0 : this.#forget(table, upTo)), // a file that is filled is new
      ...(late && { remembers: true }),
    }
  }

  #collection<D extends Doc>(spec: CollectionSpec, tableNow: () => Table): Collection<D> {
    const isApart = () => this.#tables.isApart(spec)
    return collectionOf<D>(spec, { guard: this.#guard, tableNow, isApart })
  }

  /** Writes the last slice with the checkpoint. Other work continues between slices. */
  async #write(table: Table, writes: readonly Write[], checkpoint: Cursor): Promise<void> {
    let at = 0
    do {
      const wait = slices.take()
      if (wait) await wait
      const milliseconds = slices.left
      const next = this.#guard.run(() => table.write(writes, checkpoint, { at, milliseconds }))
      this.#tables.wrote(table, (next - at + 4) * PAGE_BYTES)
      at = next
    } while (at < writes.length)
    if (writes.some(({ doc }) => doc === null)) this.#removals.shrink(table)
  }

  async #forget(table: Table, upTo: Cursor): Promise<number> {
    const wait = slices.take()
    if (wait) await wait
    const forgotten = this.#guard.run(() => table.forgetRemovals(upTo))
    if (forgotten === 0) return 0
    this.#tables.wrote(table, forgotten * PAGE_BYTES)
    await this.#tables.walOf(table.db).hasRoom()
    this.#removals.shrink(table)
    return forgotten
  }

  async versions(): Promise<readonly Version[]> {
    return this.#guard.run(() => this.#tables.registry.versions())
  }

  /** No other process reads the file, so nothing is asked twice. */
  async drop(version: Version, isUnread: () => Promise<boolean>): Promise<void> {
    if (await isUnread()) await this.#removals.version(version)
  }

  /** The version gets the other table in one transaction. Its former table is dropped slowly, also after a crash. */
  async replace(version: Version, by: Version, isUnread?: () => Promise<boolean>): Promise<boolean> {
    if (isUnread && !(await isUnread())) return false
    const former = this.#guard.run(() => {
      const row = this.#tables.registry.replace(version, by)
      if (row === null) return null
      const table = this.#tables.opened(version)
      this.#tables.forget(version)
      this.#tables.forget(by)
      this.#dropped.add(tableName(by))
      return { ...row, table }
    })
    if (former) void this.#removals.replaced(former)
    return true
  }

  readonly freeBytes = (): number => freeBytes(this.#dir)

  async source(): Promise<FoldedLog> {
    return this.#guard.run(() => {
      const { registry } = this.#tables
      const { log_id, checkpoint } = registry.source()
      const filled = registry.sides().filter(({ is_filling }) => !is_filling)
      const others = filled.map(({ spec }) => this.#tables.open(spec).checkpoint() ?? '')
      const newest = others.reduce((a, b) => (a > b ? a : b), checkpoint ?? '')
      return { log_id, checkpoint: newest === '' ? checkpoint : newest }
    })
  }

  async assign(log_id: string): Promise<void> {
    this.#guard.run(() => this.#tables.registry.assign(log_id))
  }

  async countAfter(cursor: Cursor): Promise<number> {
    return this.#guard.run(() => {
      let count = 0
      for (const spec of this.#tables.registry.begun()) count += this.#tables.open(spec).countAfter(cursor)
      return count
    })
  }

  async restart(log_id: string): Promise<void> {
    await this.#leave()
    this.#guard.run(() => {
      this.#tables.close()
      this.#sides.close()
      this.#sides.removeOthers(new Set())
      this.#tables = this.#tablesIn(renewFile(this.#dir, 'they belong to another log', this.#onDiscarded))
      this.#removals = this.#removalsNow()
    })
    await this.assign(log_id)
  }

  async close(): Promise<void> {
    if (this.#guard.isClosed) return
    this.#guard.close()
    await this.#leave()
    await this.#checkpointer.close()
    this.#sides.close()
    this.#tables.close()
  }

  /** Ends the background work on the file. */
  async #leave(): Promise<void> {
    await this.#removals.leave()
    this.#tables.leave()
  }
}
