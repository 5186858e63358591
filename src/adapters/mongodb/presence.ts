import { setTimeout as delay } from 'node:timers/promises'
import { clock, elapsedMs, type Instant, instantNow } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { CollectionSpec } from '../../ports/readModels.ts'
import { droppedError } from '../shared/dropped.ts'
import { collectionName } from './collections.ts'
import { isInterrupted } from './failures.ts'
import type { Registry, VersionRow } from './registry.ts'

/** A row of the registry is trusted for this time after it was read. Dropping waits longer. */
export const ROW_MS = 1000

/** The pauses of a reader while documents are exchanged, and the time after which it is refused, milliseconds. */
const EXCHANGE_LOOK_MS = 10
const EXCHANGE_MS = 10_000

const isWhole = (before: VersionRow | null, after: VersionRow | null): boolean =>
  !before?.exchange?.isMoving && !after?.exchange?.isMoving && before?.exchanged === after?.exchanged

const exchangedError = (spec: CollectionSpec): AppError =>
  new AppError('unavailable', `The documents of ${collectionName(spec)} were exchanged during the read`)

interface Seen {
  readonly row: VersionRow | null
  readonly askedAt: Instant
}

/**
 * Proves that a version existed during a read. Invariants:
 * L1: a version is dropped no earlier than `ROW_MS` after its row was marked, and not if the mark was removed.
 * L2: a read counts only if its row was read less than `ROW_MS` before its end, or after it. A node that still reads a
 *     marked version removes the mark.
 * L3: a version that was dropped and created again is incomplete at first, so its former readers stay refused.
 * L4: while an exchange of documents is announced, rows are not trusted for any time. It moves them no earlier than `ROW_MS`
 *     later. A read counts only if nothing was moved between its two rows.
 */
export class Presence {
  readonly #registry: Registry
  readonly #seen = new Map<string, Promise<Seen>>()
  /** The first row that was seen of each version. */
  readonly #first = new Map<string, VersionRow>()

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** Reads again if the documents were exchanged meanwhile (L4). The row is null if the version was never registered. */
  async read<T>(spec: CollectionSpec, work: (row: VersionRow | null) => Promise<T>): Promise<T> {
    const began = clock.monotonic()
    for (;;) {
      const before = await this.#confirm(spec)
      const read = await work(before).then(
        (result) => ({ result }),
        (error: unknown) => {
          if (!isInterrupted(error)) throw error
        },
      )
      const after = await this.#confirm(spec) // L2
      if (read && isWhole(before, after)) return read.result
      if (clock.monotonic() - began > EXCHANGE_MS) throw exchangedError(spec)
      await delay(EXCHANGE_LOOK_MS)
    }
  }

  async *scan<T>(
    spec: CollectionSpec,
    rows: (row: VersionRow | null) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    const before = await this.#confirm(spec)
    yield* rows(before)
    if (isWhole(before, await this.#confirm(spec))) return
    throw exchangedError(spec)
  }

  /** Throws if the version was dropped. One that was never registered is empty. */
  async #confirm(spec: CollectionSpec): Promise<VersionRow | null> {
    const { row } = await this.#current(spec)
    const name = collectionName(spec)
    const first = this.#first.get(name) ?? row
    if (first === null) return row
    if (row === null || row.made !== first.made) throw droppedError(spec) // L3
    this.#first.set(name, first)
    if (row.dropping === undefined) return row
    this.#seen.delete(name)
    await this.#registry.keep(spec)
    return row
  }

  async #current(spec: CollectionSpec): Promise<Seen> {
    const known = await this.#seen.get(collectionName(spec))
    const isFresh = known && elapsedMs(known.askedAt) < ROW_MS
    return isFresh && known.row?.exchange === undefined ? known : this.#ask(spec)
  }

  /** Concurrent callers share one request. */
  #ask(spec: CollectionSpec): Promise<Seen> {
    const name = collectionName(spec)
    const askedAt = instantNow()
    const asked = this.#registry.row(spec).then((row) => ({ row, askedAt }))
    this.#seen.set(name, asked)
    asked.catch(() => {
      if (this.#seen.get(name) === asked) this.#seen.delete(name)
    })
    return asked
  }
}
