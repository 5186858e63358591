import type { Version } from '../../../ports/readModels.ts'
import { dropSlowly, type Kept, shrink } from './dropping.ts'
import type { Guard } from './guard.ts'
import type { SideFiles } from './sideFiles.ts'
import { type Table, tableName } from './table.ts'
import type { Tables } from './tables.ts'

/** A table that no version has any more. */
interface Replaced {
  readonly stored_as: string
  readonly side?: string | null
  readonly table?: Table | undefined
}

interface Parts {
  readonly tables: Tables
  readonly sides: SideFiles
  readonly guard: Guard
  /** Gets the names of tables that readers may have seen. */
  readonly dropped: Set<string>
}

/**
 * Drops tables between other work, one at a time, and gives their space back to the disk. Those that are not dropped when it
 * ends are dropped after the next open.
 */
export class Removals {
  readonly #tables: Tables
  readonly #sides: SideFiles
  readonly #guard: Guard
  readonly #dropped: Set<string>
  readonly #leaving = new AbortController()
  readonly #shrinking = new Set<Kept['db']>()
  #dropping: Promise<void> = Promise.resolve()

  constructor({ tables, sides, guard, dropped }: Parts) {
    this.#tables = tables
    this.#sides = sides
    this.#guard = guard
    this.#dropped = dropped
  }

  /** Rejects if the version is still there. It is gone at once, so that nothing continues it with a part of its documents. */
  async version(version: Version): Promise<void> {
    const former = await this.#next(() => this.#remove(version)).catch((error: unknown) =>
      this.#guard.refuse(error),
    )
    if (former) await this.replaced(former)
  }

  replaced(former: Replaced): Promise<void> {
    return this.#later(() => this.#dropReplaced(former))
  }

  /** Documents of a file were removed. */
  shrink({ db }: Pick<Kept, 'db'>): void {
    if (this.#shrinking.has(db)) return
    this.#shrinking.add(db)
    void this.#later(() => {
      this.#shrinking.delete(db)
      return this.#shrink(db)
    })
  }

  async leave(): Promise<void> {
    this.#leaving.abort()
    await this.#dropping
  }

  /** What fails is repeated after the next open. */
  #later(drop: () => Promise<void>): Promise<void> {
    return this.#next(drop).catch((error: unknown) => this.#guard.noteDamage(error))
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#dropping.then(work)
    this.#dropping = done.then(
      () => {},
      () => {},
    )
    return done
  }

  #shrink(db: Kept['db']): Promise<void> {
    return shrink({ db, wal: this.#tables.walOf(db) }, this.#leaving.signal)
  }

  async #dropSlowly(stored_as: string): Promise<void> {
    const { db } = this.#tables
    const { signal } = this.#leaving
    await dropSlowly({ db, wal: this.#tables.walOf(db) }, stored_as, signal)
    if (!signal.aborted) this.shrink({ db })
  }

  async #dropReplaced({ stored_as, side = null, table }: Replaced): Promise<void> {
    const { signal } = this.#leaving
    await table?.unread(signal)
    if (side !== null) return signal.aborted ? undefined : this.#sides.remove(side)
    await this.#dropSlowly(stored_as)
    if (!signal.aborted) this.#tables.registry.forgetReplaced(stored_as)
  }

  async #remove(version: Version): Promise<Replaced | null> {
    const { registry } = this.#tables
    await this.#tables.opened(version)?.unread(this.#leaving.signal)
    const found = registry.remove(version)
    this.#tables.forget(version)
    if (!found?.is_filling) this.#dropped.add(tableName(version)) // no reader has seen one that a thread fills
    return found
  }
}
