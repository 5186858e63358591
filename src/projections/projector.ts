import { clock, instantNow } from '../clock.ts'
import { type Cursor, START } from '../events/event.ts'
import { slices } from '../loops/slices.ts'
import type { Batch, EventStore } from '../ports/eventStore.ts'
import type { ReadModels, WritableCollection } from '../ports/readModels.ts'
import { BatchWriter } from './batchWriter.ts'
import type { Fill } from './fill.ts'
import { type Pace, whileForgetting } from './forgetRemovals.ts'
import { refusingLate } from './freshness.ts'
import { Parts } from './parts.ts'
import { nameOf, type Projection } from './projection.ts'
import { readAhead } from './readAhead.ts'
import { SkippedFacts } from './skippedFacts.ts'
import { Waiters } from './waiters.ts'

/** The most pages of the log in one batch: each batch is a transaction of the read models. */
const PAGES = 4
/** The same for a server, whose disk each write waits for several times. */
const PAGES_FOR_SERVER = 8

/** The time for which a batch grows while no reader waits: it makes fewer and larger writes. */
const LINGER_MS = 100

export interface ProjectorOptions {
  /** The time for which a batch may grow while no reader is known to wait, milliseconds. */
  readonly lingerMs: () => number
  /** The most pages of the log in one batch. The facts of a batch stay in memory together. Default: by the engine. */
  readonly pages: number | undefined
  /** Called with each new position of a read model that has caught up once. */
  readonly onMoved: (name: string, position: Cursor) => void
  /** Whether the documents of a read model have contained the whole log once, on any node. */
  readonly wasComplete: (name: string) => Promise<boolean>
  /** Called before a read model without documents is built. */
  readonly onNew: (name: string) => Promise<void>
  /** Called when the read model continues without a fact. The error names the fact. */
  readonly onSkipped: (name: string, error: unknown) => void
  /** Called with a text that names a fact which this build cannot read, if `fill` finds one that no read model needs. */
  readonly onUnreadable: (reason: string) => void
  /** Called first: builds a new read model apart from this process. */
  readonly fill: Fill
  /** When removals are forgotten. */
  readonly forgetting: Partial<Pace>
}

/** A cursor that only moved past other events is stored after this many batches. */
const IDLE_BATCHES = 256

/**
 * Keeps one read model at the end of the log. Invariants, besides those of `BatchWriter`:
 * P2: `reach(cursor)` resolves when readers see everything up to the cursor (I2).
 * P3: readers wait until the read model has caught up with the log once (I8). One that continues complete documents reports
 *     its positions at once, because it may stay behind a log that grows fast.
 */
export class Projector {
  readonly name: string
  readonly #projection: Projection
  readonly #readModels: ReadModels
  readonly #log: Pick<EventStore, 'subscribe'>
  readonly #waiting = new Waiters()
  readonly #parts = new Parts()
  readonly #options: ProjectorOptions
  readonly #filled = Promise.withResolvers<void>()
  #position: Cursor = START
  #stored: Cursor = START
  #hasCaughtUp = false
  /** Monotonic milliseconds at which it last contained the whole log, or began. */
  #wholeAt = 0
  #hurry: (() => void) | undefined

  constructor(
    projection: Projection,
    {
      readModels,
      store,
      lingerMs = () => LINGER_MS,
      pages,
      wasComplete = () => Promise.resolve(false),
      onNew = () => Promise.resolve(),
      onMoved = () => {},
      onSkipped = () => {},
      onUnreadable = () => {},
      fill = () => Promise.resolve(),
      forgetting = {},
    }: { readModels: ReadModels; store: Pick<EventStore, 'subscribe'> } & Partial<ProjectorOptions>,
  ) {
    this.name = nameOf(projection)
    this.#options = {
      lingerMs,
      pages,
      wasComplete,
      onNew,
      onMoved,
      onSkipped,
      onUnreadable,
      fill,
      forgetting,
    }
    this.#projection = projection
    this.#readModels = readModels
    this.#log = store
  }

  /** The position that readers see: the start of the log until the read model has caught up (P3). */
  get position(): Cursor {
    return this.#hasCaughtUp ? this.#position : START
  }

  /** The position up to which the read model is built, although it may not be complete yet. */
  get builtTo(): Cursor {
    return this.#position
  }

  get projection(): Projection {
    return this.#projection
  }

  /** The checkpoint that it has stored, or found at its begin; `START` while it does not run. */
  get stored(): Cursor {
    return this.#stored
  }

  /** Resolves when nothing apart from this process builds the read model any more. */
  get filled(): Promise<void> {
    return this.#filled.promise
  }

  /** The time for which it has not contained the whole log, milliseconds; 0 while it does. */
  lagMs(head: Cursor): number {
    return this.#hasCaughtUp && this.#position >= head ? 0 : clock.monotonic() - this.#wholeAt
  }

  get hasCaughtUp(): boolean {
    return this.#hasCaughtUp
  }

  /** Resolves when the read model has caught up and contains everything up to the cursor (P2), or the signal aborts. */
  reach(cursor: Cursor, signal?: AbortSignal): Promise<void> {
    if (this.#hasCaughtUp && this.#position >= cursor) return Promise.resolve()
    this.#hurry?.()
    return slices.readerOf(this.#waiting.wait(cursor, signal))
  }

  /** Writes the events collected so far, because a reader waits. */
  hurry(): void {
    this.#hurry?.()
  }

  /**
   * Runs until the signal aborts; rejects when an engine refuses. `run` may be called again: it resumes. `onBegun` is called when
   * it reads the log, or when something apart from this process does, which takes longer than a turn of the event loop.
   */
  async run(signal: AbortSignal, onBegun = () => {}): Promise<void> {
    try {
      await this.#run(signal, onBegun)
    } finally {
      this.#stored = START
    }
  }

  async #run(signal: AbortSignal, onBegun: () => void): Promise<void> {
    this.#wholeAt ||= clock.monotonic()
    const onPosition = (position: Cursor) => {
      if (!this.#hasCaughtUp) this.#position = position
    }
    const { fill, onUnreadable } = this.#options
    const apart = setImmediate(onBegun)
    await fill(this.#projection, { signal, onPosition, onUnreadable }).finally(this.#filled.resolve)
    clearImmediate(apart)
    if (signal.aborted) return
    const stored = await this.#readModels.writer(this.#projection)
    const follow = (until: AbortSignal) => this.#follow(stored, onBegun, until)
    if (stored.isRemote && !this.#projection.forgetsRemovals) return follow(signal)
    await whileForgetting(stored, this.#options.forgetting, follow, signal)
  }

  /** Brings the documents to the end of the log, and keeps them there. */
  async #follow(stored: WritableCollection, onBegun: () => void, signal: AbortSignal): Promise<void> {
    const begun = instantNow()
    const collection =
      stored.isRemote && this.#projection.forgetsRemovals
        ? refusingLate(stored, { begun, position: () => this.#position })
        : stored
    const skipped = await SkippedFacts.open(this.#readModels, this.name)
    const checkpoint = await collection.checkpoint()
    if (checkpoint === null) {
      await skipped.clear()
      await this.#options.onNew(this.name)
    }
    const onSkipped = (error: unknown) => this.#options.onSkipped(this.name, error)
    const onStored = (position: Cursor) => {
      this.#stored = position
      this.#move(position) // a slow server takes minutes for a batch
    }
    const [projection, parts] = [this.#projection, this.#parts]
    const writer = new BatchWriter({ projection, collection, skipped, parts, onSkipped })
    const position = checkpoint ?? START
    if (position < this.#position) this.#hasCaughtUp = false // the documents were removed: P3 applies again
    this.#hasCaughtUp ||= checkpoint !== null && (await this.#options.wasComplete(this.name))
    this.#position = position
    this.#stored = position
    let unstored = 0
    let hasArrived = false
    onBegun()
    const pages = this.#log.subscribe({ after: this.#position, types: this.#projection.handles, signal })
    const batches = this.#gathered(
      pages,
      this.#options.pages ?? (collection.isRemote ? PAGES_FOR_SERVER : PAGES),
    )
    for await (const { events, cursor, caughtUp } of collection.isRemote ? readAhead(batches) : batches) {
      const arrives: boolean = caughtUp && !hasArrived // also after a restore, so that no earlier checkpoint stays newer
      if (writer.concern(events) || ++unstored >= IDLE_BATCHES || arrives) {
        await writer.store(events, { reached: this.#position, cursor, onStored })
        unstored = 0
      }
      if (caughtUp) this.#wholeAt = clock.monotonic()
      hasArrived ||= caughtUp
      this.#hasCaughtUp ||= caughtUp // P3
      if (arrives || this.#position < cursor) this.#move(cursor)
      if (!caughtUp || this.#waiting.size > 0) continue
      await this.#linger(signal)
      await slices.take()
    }
  }

  /** Notes that the documents contain everything up to the position, for readers once it has caught up (P3). */
  #move(position: Cursor): void {
    this.#position = position
    if (!this.#hasCaughtUp) return
    this.#waiting.release(position)
    this.#options.onMoved(this.name, position)
  }

  /** Reads several pages as one batch while the projector is behind, which makes fewer and larger writes. */
  async *#gathered(pages: AsyncIterable<Batch>, most: number): AsyncGenerator<Batch> {
    let gathered: Batch['events'][] = []
    for await (const page of pages) {
      gathered.push(page.events)
      const awaited = this.#hasCaughtUp && this.#waiting.has(page.cursor)
      if (!page.caughtUp && !awaited && gathered.length < most) continue
      yield { ...page, events: gathered.length === 1 ? page.events : gathered.flat() }
      gathered = []
    }
  }

  #linger(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        this.#hurry = undefined
        resolve()
      }
      const timer = setTimeout(done, this.#options.lingerMs())
      this.#hurry = done
      signal.addEventListener('abort', done)
    })
  }
}
