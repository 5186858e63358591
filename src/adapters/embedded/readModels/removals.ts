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

  version(version: Version): Promise<void> {
    return this.#later(() => this.#drop(version))
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

  #later(drop: () => Promise<void>): Promise<void> {
    this.#dropping = this.#dropping.then(drop).catch((error: unknown) => this.#guard.noteDamage(error))
    return this.#dropping
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

  async #drop(version: Version): Promise<void> {
    const { signal } = this.#leaving
    const { registry } = this.#tables
    const found = registry.find(version)
    const { stored_as = tableName(version), side = null } = found ?? {}
    await this.#tables.opened(version)?.unread(signal)
    this.#tables.forget(version)
    if (!found?.is_filling) this.#dropped.add(tableName(version)) // no reader has seen one that a thread fills
    if (side === null) await this.#dropSlowly(stored_as)
    if (signal.aborted) return
    registry.remove(version)
    if (side !== null) await this.#sides.remove(side)
  }
}
