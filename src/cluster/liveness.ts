import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import { START } from '../events/event.ts'
import type { CollectionSpec, ReadModels, WritableCollection } from '../ports/readModels.ts'

/** The interval of heartbeats, milliseconds. */
const BEAT_MS = 400
/** A node or worker without a sign of life for this long is declared lost. */
const LOST_MS = 6000

type BeatDoc = { readonly count: number }

const beats: CollectionSpec = { name: 'beats', version: 1, indexes: [] }

/** Counters as cursors: padded, so that they sort. */
export const countOf = (cursor: string | undefined): number => (cursor ? Number(cursor) : 0)
export const cursorAt = (count: number): string => String(count).padStart(16, '0')

/**
 * Heartbeats of the nodes and workers of a cluster. Each node increments a counter in its own document. The others time
 * it with their own monotonic clocks, so no two clocks are compared. Invariants:
 * M1: time in which this node could not read the heartbeats does not count as silence.
 * M2: correctness never depends on liveness. The log and the guards of the read models refuse the writes of a node that
 * was declared dead by mistake.
 */
export class Liveness {
  readonly #readModels: ReadModels
  /** The ids in the heartbeats of this process. */
  readonly #mine = new Set<string>()
  /** The watched ids: the last count seen, and for how long it has not changed, milliseconds. */
  readonly #watched = new Map<string, { count: number; silentMs: number }>()
  #count = 0

  constructor(readModels: ReadModels) {
    this.#readModels = readModels
  }

  /** Adds the id of a node or worker to the heartbeats of this process, from the next one on. */
  join(id: string): void {
    this.#mine.add(id)
  }

  /** Returns the time without a heartbeat of an id. The first call starts the watch and returns 0. */
  silentMs(id: string): number {
    let watched = this.#watched.get(id)
    if (!watched) {
      watched = { count: -1, silentMs: 0 }
      this.#watched.set(id, watched)
    }
    return watched.silentMs
  }

  /** Whether the node or worker counts as dead; correctness never depends on it (M2). */
  isLost(id: string): boolean {
    return this.silentMs(id) > LOST_MS
  }

  /** Ends the watch of an id. */
  forget(id: string): void {
    this.#watched.delete(id)
  }

  /** Beats and observes until the signal aborts. Rejects when the read models do not answer; can be called again. */
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

  /** Removes the heartbeats of this process, so that the other nodes notice its end at once. */
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
