import { setTimeout as delay } from 'node:timers/promises'
import { clock, elapsedMs, type Instant, instantNow } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { START } from '../../events/event.ts'
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

/** Whether a version has a lower checkpoint than before. One that was created again is another one. */
const isBehind = (row: VersionRow, newest: VersionRow | undefined): boolean =>
  newest !== undefined && row.made === newest.made && (row.checkpoint ?? START) < (newest.checkpoint ?? START)

const exchangedError = (spec: CollectionSpec): AppError =>
  new AppError('unavailable', `The documents of ${collectionName(spec)} were exchanged during the read`)

const restoredError = (name: string): AppError =>
  new AppError(
    'unavailable',
    `The read model ${name} was restored from a backup and lacks events: try again when its projector has brought it up to date`,
  )

interface Seen {
  /** Whether its checkpoint is lower than one that was seen before (L5). */
  readonly isRestored: boolean
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
 * L5: a checkpoint decreases only by a restore. Until it is again where this process has seen it, the documents are refused:
 *     readers trust the positions of before (I2). What a read shows may be later than its trusted row, so the row is read again
 *     at the end of its time.
 */
export class Presence {
  readonly #registry: Registry
  readonly #seen = new Map<string, Promise<Seen>>()
  /** The first row that was seen of each version. */
  readonly #first = new Map<string, VersionRow>()
  /** The row with the newest checkpoint that was seen of each version (L5). */
  readonly #newest = new Map<string, VersionRow>()
  /** The looks at the rows of versions whose trusted rows were used, by the name of the version (L5). */
  readonly #looks = new Map<string, NodeJS.Timeout>()

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** Reads again if the documents were exchanged meanwhile (L4). The row is null if the version was never registered. */
  read<T>(spec: CollectionSpec, work: (row: VersionRow | null) => Promise<T>): Promise<T> {
    return this.#read(spec, work, 'documents')
  }

  /** The same for what is not in the documents, also if they are refused (L5). */
  readState<T>(spec: CollectionSpec, work: () => Promise<T>): Promise<T> {
    return this.#read(spec, work, 'state')
  }

  /** Notes the checkpoints of all versions, also of those that nobody reads now (L5). */
  async look(): Promise<void> {
    for (const row of await this.#registry.rows()) this.#note(row)
  }

  close(): void {
    for (const timer of this.#looks.values()) clearTimeout(timer)
  }

  async #read<T>(
    spec: CollectionSpec,
    work: (row: VersionRow | null) => Promise<T>,
    what: 'documents' | 'state',
  ): Promise<T> {
    const began = clock.monotonic()
    for (;;) {
      const before = await this.#confirm(spec, what)
      const read = await work(before).then(
        (result) => ({ result }),
        (error: unknown) => {
          if (!isInterrupted(error)) throw error
        },
      )
      const after = await this.#confirm(spec, what) // L2
      if (read && isWhole(before, after)) return read.result
      if (clock.monotonic() - began > EXCHANGE_MS) throw exchangedError(spec)
      await delay(EXCHANGE_LOOK_MS)
    }
  }

  async *scan<T>(
    spec: CollectionSpec,
    rows: (row: VersionRow | null) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    const before = await this.#confirm(spec, 'documents')
    yield* rows(before)
    if (isWhole(before, await this.#confirm(spec, 'documents'))) return
    throw exchangedError(spec)
  }

  #note(row: VersionRow): void {
    if (!isBehind(row, this.#newest.get(row._id))) this.#newest.set(row._id, row)
  }

  /** Throws if the version was dropped. One that was never registered is empty. */
  async #confirm(spec: CollectionSpec, what: 'documents' | 'state'): Promise<VersionRow | null> {
    const { row, isRestored } = await this.#current(spec)
    const name = collectionName(spec)
    const first = this.#first.get(name) ?? row
    if (first === null) return row
    if (row === null || row.made !== first.made) throw droppedError(spec) // L3
    this.#first.set(name, first)
    if (isRestored && what === 'documents') {
      this.#seen.delete(name) // the next read asks again
      throw restoredError(name)
    }
    if (row.dropping === undefined) return row
    this.#seen.delete(name)
    await this.#registry.keep(spec)
    return row
  }

  async #current(spec: CollectionSpec): Promise<Seen> {
    const known = await this.#seen.get(collectionName(spec))
    const leftMs = known ? ROW_MS - elapsedMs(known.askedAt) : 0
    if (!known || leftMs <= 0 || known.row?.exchange !== undefined) return this.#ask(spec)
    this.#askIn(leftMs, spec)
    return known
  }

  #askIn(ms: number, spec: CollectionSpec): void {
    const name = collectionName(spec)
    if (this.#looks.has(name)) return
    const look = () => {
      this.#looks.delete(name)
      void this.#ask(spec)
    }
    this.#looks.set(name, setTimeout(look, ms).unref())
  }

  /** Concurrent callers share one request. */
  #ask(spec: CollectionSpec): Promise<Seen> {
    const name = collectionName(spec)
    const askedAt = instantNow()
    const newest = this.#newest.get(name) // before: a later row may be noted meanwhile
    const asked = this.#registry.row(spec).then((row) => {
      if (row) this.#note(row)
      return { row, askedAt, isRestored: row !== null && isBehind(row, newest) }
    })
    this.#seen.set(name, asked)
    asked.catch(() => {
      if (this.#seen.get(name) === asked) this.#seen.delete(name)
    })
    return asked
  }
}
