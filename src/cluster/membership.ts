import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import { START } from '../events/event.ts'
import type { CollectionSpec, ReadModels, WritableCollection } from '../ports/readModels.ts'

/** Signs of life come this often, milliseconds. */
const BEAT_MS = 400

type BeatDoc = { readonly count: number }

const beats: CollectionSpec = { name: 'beats', version: 1, indexes: [] }

/** Counters as cursors: padded, so that they sort. */
export const countOf = (cursor: string | undefined): number => (cursor ? Number(cursor) : 0)
export const cursorAt = (count: number): string => String(count).padStart(16, '0')

/**
 * Who in the cluster gives signs of life. Everybody counts in a document of its own; the others look whether it goes
 * on counting, by their own monotonic clocks, so no two clocks are compared. Invariants:
 * M1: time in which this node could not read the signs counts against nobody.
 * M2: correctness never rests on it: who is wrongly believed dead is refused by the log or by the guards of the
 * read models.
 */
export class Membership {
  readonly #readModels: ReadModels
  /** Whom this process beats for. */
  readonly #mine = new Set<string>()
  /** Who is watched: the last count seen, and for how long it has been the same, milliseconds. */
  readonly #watched = new Map<string, { count: number; silentMs: number }>()
  #count = 0

  constructor(readModels: ReadModels) {
    this.#readModels = readModels
  }

  /** From the next beat on this process gives signs for the id: a node's, or a worker's. */
  join(id: string): void {
    this.#mine.add(id)
  }

  /** How long an id gave no sign as seen from here; asking begins the watch, with 0. */
  silentMs(id: string): number {
    let watched = this.#watched.get(id)
    if (!watched) {
      watched = { count: -1, silentMs: 0 }
      this.#watched.set(id, watched)
    }
    return watched.silentMs
  }

  /** Nobody asks for the id any more. */
  forget(id: string): void {
    this.#watched.delete(id)
  }

  /** Beats and looks until the signal aborts. Rejects when the read models do not answer; may be run again. */
  async run(signal: AbortSignal): Promise<void> {
    const collection = await this.#readModels.writer<BeatDoc>(beats)
    let looked = clock.monotonic()
    while (!signal.aborted) {
      await this.#beat(collection, { count: this.#count + 1 })
      const now = clock.monotonic()
      await this.#look(collection, Math.min(now - looked, 2 * BEAT_MS)) // M1
      looked = now
      await delay(BEAT_MS, undefined, { signal }).catch(() => {})
    }
  }

  /** Takes the signs down, so that the others know at once. */
  async leave(): Promise<void> {
    await this.#beat(await this.#readModels.writer<BeatDoc>(beats), null)
  }

  async #beat(collection: WritableCollection<BeatDoc>, doc: BeatDoc | null): Promise<void> {
    if (this.#mine.size === 0) return
    const cursor = cursorAt(++this.#count)
    await collection.write(
      [...this.#mine].map((id) => ({ id, doc, cursor })),
      START,
    )
  }

  async #look(collection: WritableCollection<BeatDoc>, elapsedMs: number): Promise<void> {
    if (this.#watched.size === 0) return
    const found = await collection.getMany([...this.#watched.keys()])
    for (const [id, watched] of this.#watched) {
      const count = found.get(id)?.count ?? -1
      if (count === watched.count) watched.silentMs += elapsedMs
      else Object.assign(watched, { count, silentMs: 0 })
    }
  }
}
