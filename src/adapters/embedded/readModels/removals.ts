import type { Version } from '../../../ports/readModels.ts'
import { dropSlowly } from './dropping.ts'
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

/** Drops tables between other work, one at a time. Those that are not dropped when it ends are dropped after the next open. */
export class Removals {
  readonly #tables: Tables
  readonly #sides: SideFiles
  readonly #guard: Guard
  readonly #dropped: Set<string>
  readonly #leaving = new AbortController()
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

  async leave(): Promise<void> {
    this.#leaving.abort()
    await this.#dropping
  }

  #later(drop: () => Promise<void>): Promise<void> {
    this.#dropping = this.#dropping.then(drop).catch((error: unknown) => this.#guard.noteDamage(error))
    return this.#dropping
  }

  async #dropReplaced({ stored_as, side = null, table }: Replaced): Promise<void> {
    const { signal } = this.#leaving
    await table?.unread(signal)
    if (side !== null) return signal.aborted ? undefined : this.#sides.remove(side)
    await dropSlowly(this.#tables.db, stored_as, signal)
    if (!signal.aborted) this.#tables.registry.forgetReplaced(stored_as)
  }

  async #drop(version: Version): Promise<void> {
    const { signal } = this.#leaving
    const { registry, db } = this.#tables
    const found = registry.find(version)
    const { stored_as = tableName(version), side = null } = found ?? {}
    await this.#tables.opened(version)?.unread(signal)
    this.#tables.forget(version)
    if (!found?.is_filling) this.#dropped.add(tableName(version)) // no reader has seen one that a thread fills
    if (side === null) await dropSlowly(db, stored_as, signal)
    if (signal.aborted) return
    registry.remove(version)
    if (side !== null) await this.#sides.remove(side)
  }
}
