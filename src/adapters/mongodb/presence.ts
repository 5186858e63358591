import { clock } from '../../clock.ts'
import type { CollectionSpec } from '../../ports/readModels.ts'
import { droppedError } from '../shared/dropped.ts'
import { collectionName } from './collections.ts'
import type { Registry, VersionRow } from './registry.ts'

/** A row of the registry is trusted for this time after it was read. Dropping waits longer. */
export const ROW_MS = 1000

interface Seen {
  readonly row: VersionRow | null
  readonly askedAt: number
}

/**
 * Proves that a version existed during a read. Invariants:
 * L1: a version is dropped no earlier than `ROW_MS` after its row was marked, and not if the mark was removed.
 * L2: a read counts only if its row was read less than `ROW_MS` before its end, or after it. A node that still reads a
 *     marked version removes the mark.
 * L3: a version that was dropped and created again is incomplete at first, so its former readers stay refused.
 */
export class Presence {
  readonly #registry: Registry
  readonly #seen = new Map<string, Promise<Seen>>()
  /** The first row that was seen of each version. */
  readonly #first = new Map<string, VersionRow>()

  constructor(registry: Registry) {
    this.#registry = registry
  }

  async read<T>(spec: CollectionSpec, work: () => Promise<T>): Promise<T> {
    await this.#confirm(spec)
    const result = await work()
    await this.#confirm(spec) // L2
    return result
  }

  async *scan<T>(spec: CollectionSpec, rows: () => AsyncIterable<T>): AsyncGenerator<T> {
    await this.#confirm(spec)
    yield* rows()
    await this.#confirm(spec)
  }

  /** Throws if the version was dropped. One that was never registered is empty. */
  async #confirm(spec: CollectionSpec): Promise<void> {
    const { row } = await this.#current(spec)
    const name = collectionName(spec)
    const first = this.#first.get(name) ?? row
    if (first === null) return
    if (row === null || row.made !== first.made) throw droppedError(spec) // L3
    this.#first.set(name, first)
    if (row.dropping === undefined) return
    this.#seen.delete(name)
    await this.#registry.keep(spec)
  }

  async #current(spec: CollectionSpec): Promise<Seen> {
    const known = await this.#seen.get(collectionName(spec))
    return known && clock.monotonic() - known.askedAt < ROW_MS ? known : this.#ask(spec)
  }

  /** Concurrent callers share one request. */
  #ask(spec: CollectionSpec): Promise<Seen> {
    const name = collectionName(spec)
    const askedAt = clock.monotonic()
    const asked = this.#registry.row(spec).then((row) => ({ row, askedAt }))
    this.#seen.set(name, asked)
    asked.catch(() => {
      if (this.#seen.get(name) === asked) this.#seen.delete(name)
    })
    return asked
  }
}
