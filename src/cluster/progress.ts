import { setTimeout as delay } from 'node:timers/promises'
import { type Cursor, START } from '../events/event.ts'
import { Backoff } from '../loops/backoff.ts'
import type { Hints } from '../ports/hints.ts'
import type { CollectionSpec, ReadModels, WritableCollection } from '../ports/readModels.ts'
import type { Building, Progress } from '../projections/projectors.ts'
import { Waiters } from '../projections/waiters.ts'

type ProgressDoc = { readonly position: Cursor }

const progress: CollectionSpec = { name: 'progress', version: 1, indexes: [] }

/** Pauses between reads of the projectors' positions while a reader waits. */
const LOOKS = { firstMs: 2, longestMs: 50 }
/** The pause while hints arrive, which make the read needless: it is for the hints that were lost. */
const LOOK_BESIDE_HINTS_MS = 100
/** The shortest intervals between two writes of the positions, milliseconds. */
const STORE_MS = 20
const STORE_BESIDE_HINTS_MS = 500

/** Reports the positions of this node's projectors to every node. A position whose write failed is written again. */
export class ProgressReporter {
  readonly #readModels: ReadModels
  readonly #hints: Hints
  readonly #moved = new Map<string, Cursor>()
  /** The cursors of positions that were removed, by the name of the read model. */
  readonly #removed = new Map<string, Cursor>()
  /** The positions that were written last. */
  readonly #written = new Map<string, Cursor>()
  #wake: (() => void) | undefined

  constructor(readModels: ReadModels, hints: Hints) {
    this.#readModels = readModels
    this.#hints = hints
  }

  /** Whether a projector of any node has reported a position. None does before its read model is complete. */
  async hasReported(name: string): Promise<boolean> {
    return (await this.#readModels.reader<ProgressDoc>(progress).get(name)) !== null
  }

  /** The read models whose stored positions are before those that this node has stored: they were restored from a backup. */
  async lost(): Promise<readonly string[]> {
    const names = [...this.#written.keys()]
    const stored = await this.#readModels.reader<ProgressDoc>(progress).getMany(names)
    const isLost = (name: string) =>
      (stored.get(name)?.position ?? START) < (this.#written.get(name) ?? START)
    const lost = names.filter(isLost)
    for (const name of lost) this.#removed.delete(name) // it is learned again before the next write
    return lost
  }

  /**
   * Removes the position of a read model that is new or about to be dropped. Otherwise, one that is built again would pass
   * for complete.
   */
  async forget(name: string): Promise<void> {
    const collection = await this.#readModels.writer<ProgressDoc>(progress)
    const stored = (await collection.stored([name])).get(name)
    this.#moved.delete(name)
    this.#removed.delete(name)
    this.#written.delete(name)
    if (stored?.doc) await collection.write([{ id: name, doc: null, cursor: after(stored.cursor) }], START)
  }

  moved(name: string, position: Cursor): void {
    this.#moved.set(name, position)
    this.#hints.publish('reached', `${name} ${position}`)
    this.#wake?.()
  }

  async run(signal: AbortSignal): Promise<void> {
    const collection = await this.#readModels.writer<ProgressDoc>(progress)
    signal.addEventListener('abort', () => this.#wake?.(), { once: true }) // one listener for all waits
    while (!signal.aborted) {
      if (this.#moved.size === 0) await new Promise<void>((resolve) => (this.#wake = resolve))
      const moved = [...this.#moved]
      await this.#learnRemoved(collection, moved)
      const writes = moved.map(([id, position]) => {
        const removed = this.#removed.get(id) ?? START
        return { id, doc: { position }, cursor: position > removed ? position : after(removed) }
      })
      if (writes.length > 0) await collection.write(writes, START)
      for (const [id, position] of moved) {
        if (this.#moved.get(id) !== position) continue
        this.#moved.delete(id)
        this.#written.set(id, position)
      }
      const pauseMs = this.#hints.connected ? STORE_BESIDE_HINTS_MS : STORE_MS
      await delay(pauseMs, undefined, { signal }).catch(() => {})
    }
  }

  /** A position that is reported again after its removal must win over it, also while the log does not grow. */
  async #learnRemoved(
    collection: WritableCollection<ProgressDoc>,
    moved: readonly (readonly [name: string, position: Cursor])[],
  ): Promise<void> {
    const names = moved.map(([name]) => name).filter((name) => !this.#removed.has(name))
    if (names.length === 0) return
    const stored = await collection.stored(names)
    for (const name of names) {
      const { doc, cursor } = stored.get(name) ?? {}
      this.#removed.set(name, doc === null && cursor !== undefined ? cursor : START)
    }
  }
}

/** A cursor after this one and before that of the next event. */
const after = (cursor: Cursor): Cursor => `${cursor}~`

/** Receives the positions of the projectors of all nodes from hints, and reads them when no hint arrives (I2). */
export class ProgressReader implements Progress {
  readonly #readModels: ReadModels
  readonly #hints: Hints
  readonly #known = new Map<string, { position: Cursor; readonly waiting: Waiters }>()
  readonly #signal: AbortSignal
  #looking = false

  constructor({ readModels, hints }: { readModels: ReadModels; hints: Hints }, signal: AbortSignal) {
    this.#readModels = readModels
    this.#hints = hints
    this.#signal = signal
    const stop = hints.on('reached', (text) => {
      const [name = '', position = ''] = text.split(' ')
      this.#learn(name, position)
    })
    signal.addEventListener('abort', stop, { once: true })
  }

  /** The read models that this node waits for. Their projector reports no position before they are complete. */
  get building(): readonly Building[] {
    const waited = this.#waited().filter(([, { position }]) => position === START)
    return waited.map(([name]) => ({ name, builtTo: START }))
  }

  position(name: string): Cursor {
    return this.#knownOf(name).position
  }

  reach(name: string, cursor: Cursor, signal?: AbortSignal): Promise<void> {
    const { position, waiting } = this.#knownOf(name)
    if (position >= cursor) return Promise.resolve()
    this.#hints.publish('wanted', name)
    void this.#look()
    return waiting.wait(cursor, signal)
  }

  #knownOf(name: string) {
    let known = this.#known.get(name)
    if (!known) {
      known = { position: START, waiting: new Waiters() }
      this.#known.set(name, known)
    }
    return known
  }

  #learn(name: string, position: Cursor): void {
    const known = this.#knownOf(name)
    if (position <= known.position) return
    known.position = position
    known.waiting.release(position)
  }

  #waited() {
    return [...this.#known].filter(([, { waiting }]) => waiting.size > 0)
  }

  /** Whether hints will probably report what readers wait for. They report nothing to a node that has just begun. */
  #hearsAll(): boolean {
    return this.#hints.connected && this.#waited().every(([, { position }]) => position !== START)
  }

  /** Reads the stored positions while a reader waits. */
  async #look(): Promise<void> {
    if (this.#looking) return
    this.#looking = true
    const collection = this.#readModels.reader<ProgressDoc>(progress)
    const backoff = new Backoff(LOOKS)
    const signal = this.#signal
    while (!signal.aborted) {
      if (this.#hearsAll()) await delay(LOOK_BESIDE_HINTS_MS, undefined, { signal }).catch(() => {})
      else await backoff.pause({ signal })
      const names = this.#waited().map(([name]) => name)
      if (names.length === 0) break
      const found = await collection.getMany(names).catch(() => new Map<string, ProgressDoc>()) // read again after the next pause
      for (const [name, { position }] of found) this.#learn(name, position)
    }
    this.#looking = false
  }
}
