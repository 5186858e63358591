import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import { START } from '../events/event.ts'
import { cursorAt } from '../ports/counterCursors.ts'
import type { CollectionSpec, ReadModels, WritableCollection } from '../ports/readModels.ts'

/** The interval of heartbeats, milliseconds. */
const BEAT_MS = 400
/** A node or worker without a sign of life for this long is declared lost. */
const LOST_MS = 6000
/** An id about which nobody asked for this long is watched no more: it left, or another node has forgotten it. */
const UNASKED_MS = 3600_000

type BeatDoc = {
  readonly count: number
  /** Of a node: its id, and the names of the versions of read models that it reads. svc 0.1.0 writes neither. */
  readonly id?: string
  readonly reads?: readonly string[]
  /** Of a node: its machine and its roles, for the operator. Earlier versions write neither. */
  readonly host?: string
  readonly roles?: readonly string[]
}

/** What a node announces with its heartbeats. */
type Announced = Omit<BeatDoc, 'count' | 'id'>

/** An id in the heartbeats of this process. */
interface Mine {
  readonly announced: Omit<BeatDoc, 'count'>
  /** It has no heartbeat while this returns true. */
  readonly unless: () => boolean
  /** Its first heartbeat. */
  readonly first: PromiseWithResolvers<void>
}

/** An id whose heartbeats this process watches. */
interface Watched {
  /** The last one seen; -1: none. */
  count: number
  /** The time for which it has not changed, milliseconds. */
  silentMs: number
  /** Monotonic milliseconds. */
  askedAt: number
}

/** A living node, as the others know it. */
interface LivingNode {
  readonly node_id: string
  readonly host: string
  readonly roles: string[]
}

const beats: CollectionSpec = { name: 'beats', version: 1, indexes: [] }

/**
 * Heartbeats of the nodes and workers of a cluster. Each node increments a counter in its own document. The others time
 * it with their own monotonic clocks, so no two clocks are compared. Invariants:
 * M1: time in which this node could not read the heartbeats does not count as silence.
 * M2: correctness never depends on liveness. The log and the guards of the read models refuse the writes of a node that
 * was declared dead by mistake.
 * M3: what is written and read does not grow with the number of nodes and workers that there were.
 */
export class Liveness {
  readonly #readModels: ReadModels
  readonly #unaskedMs: number
  readonly #mine = new Map<string, Mine>()
  /** The ids of this process whose last heartbeats are to be removed. */
  readonly #parted = new Set<string>()
  readonly #watched = new Map<string, Watched>()
  #count = 0

  constructor(readModels: ReadModels, { unaskedMs = UNASKED_MS }: { readonly unaskedMs?: number } = {}) {
    this.#readModels = readModels
    this.#unaskedMs = unaskedMs
  }

  /**
   * Adds the id of a node or worker to the heartbeats of this process, from the next one on. A node announces the versions
   * of read models that it reads, and what the operator wants to know about it. A worker has no heartbeats while it cannot
   * end its runs, so that others do. Resolves when a heartbeat with the id was stored: from then on, the others do not
   * count it as lost, and know what it reads. Never rejects.
   */
  join(
    id: string,
    {
      announced,
      unless = () => false,
    }: { readonly announced?: Announced; readonly unless?: () => boolean } = {},
  ): Promise<void> {
    const mine = this.#mine.get(id) ?? {
      announced: announced ? { id, ...announced } : {},
      unless,
      first: Promise.withResolvers<void>(),
    }
    this.#mine.set(id, mine)
    return mine.first.promise
  }

  /** Ends the heartbeats of an id of this process, which has another one now. Nothing else would remove them (M3). */
  part(id: string): void {
    if (this.#mine.delete(id)) this.#parted.add(id)
  }

  /** The living nodes. One that ended without leaving is among them for some seconds. */
  async nodes(): Promise<LivingNode[]> {
    const found: LivingNode[] = []
    for await (const { id, host = '', roles = [] } of this.#readModels.reader<BeatDoc>(beats).scan())
      if (id !== undefined && !this.isLost(id)) found.push({ node_id: id, host, roles: [...roles] })
    return found.sort((a, b) => (a.host + a.node_id < b.host + b.node_id ? -1 : 1))
  }

  /**
   * What the living nodes read. The first call starts the watch of each node, so each counts as living for a while.
   * Heartbeats of dead nodes are removed, because nothing else ends their watch.
   */
  async announced(): Promise<ReadonlySet<string>> {
    const names = new Set<string>()
    for await (const { id, reads = [] } of this.#readModels.reader<BeatDoc>(beats).scan()) {
      if (id === undefined) continue
      if (!this.isLost(id)) for (const name of reads) names.add(name)
      else await this.forget(id)
    }
    return names
  }

  /** Returns the time without a heartbeat of an id. The first call starts the watch and returns 0. */
  silentMs(id: string): number {
    const watched = this.#watched.get(id) ?? { count: -1, silentMs: 0, askedAt: 0 }
    watched.askedAt = clock.monotonic()
    this.#watched.set(id, watched)
    return watched.silentMs
  }

  /** Whether the node or worker counts as dead; correctness never depends on it (M2). */
  isLost(id: string): boolean {
    return this.silentMs(id) > LOST_MS
  }

  /**
   * Ends the watch of a dead node or worker, and removes its heartbeats, because it cannot do so. One that is not dead stores its
   * next heartbeat again.
   */
  async forget(id: string): Promise<void> {
    const collection = await this.#readModels.writer<BeatDoc>(beats)
    const beat = await collection.get(id)
    if (beat) await collection.write([{ id, doc: null, cursor: cursorAt(beat.count + 1) }], START)
    this.#watched.delete(id)
  }

  /** Beats and observes until the signal aborts. Rejects when the read models do not answer; can be called again. */
  async run(signal: AbortSignal): Promise<void> {
    const collection = await this.#readModels.writer<BeatDoc>(beats)
    await forgetRemoved(collection)
    let looked = clock.monotonic()
    while (!signal.aborted) {
      await this.#beat(collection)
      const now = clock.monotonic()
      await this.#look(collection, Math.min(now - looked, 2 * BEAT_MS)) // M1
      looked = now
      await delay(BEAT_MS, undefined, { signal }).catch(() => {})
    }
  }

  /** Removes the heartbeats of this process, so that the other nodes notice its end at once. */
  async leave(): Promise<void> {
    await this.#beat(await this.#readModels.writer<BeatDoc>(beats), true)
  }

  async #beat(collection: WritableCollection<BeatDoc>, isLast = false): Promise<void> {
    if (this.#mine.size === 0) return
    const count = ++this.#count
    const mine = isLast ? [...this.#mine] : [...this.#mine].filter(([, { unless }]) => !unless())
    const parted = [...this.#parted]
    const cursor = cursorAt(count)
    const written = mine.map(([id, { announced }]) => ({
      id,
      doc: isLast ? null : { count, ...announced },
      cursor,
    }))
    await collection.write([...written, ...parted.map((id) => ({ id, doc: null, cursor }))], START)
    for (const id of parted) this.#parted.delete(id)
    if (!isLast) for (const [, { first }] of mine) first.resolve() // an id that joined during the write is not in it
  }

  async #look(collection: WritableCollection<BeatDoc>, elapsedMs: number): Promise<void> {
    const unasked = clock.monotonic() - this.#unaskedMs
    for (const [id, { askedAt }] of this.#watched) if (askedAt < unasked) this.#watched.delete(id) // M3
    if (this.#watched.size === 0) return
    const found = await collection.getMany([...this.#watched.keys()])
    for (const [id, watched] of this.#watched) {
      const count = found.get(id)?.count ?? -1
      if (count === watched.count) watched.silentMs += elapsedMs
      else Object.assign(watched, { count, silentMs: 0 })
    }
  }
}

/** Each start forgets what earlier ones removed. A heartbeat that is restored by a late write is silent, and is removed again. */
const forgetRemoved = async (collection: WritableCollection): Promise<void> => {
  while ((await collection.forgetRemovals(cursorAt(Number.MAX_SAFE_INTEGER))) > 0);
}
