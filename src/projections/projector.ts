import { BoundedMap } from '../boundedMap.ts'
import { clock } from '../clock.ts'
import { messageOf, PermanentError } from '../errors.ts'
import { type Cursor, type Recorded, START } from '../events/event.ts'
import { unprocessable } from '../events/upcast.ts'
import type { Batch, EventStore } from '../ports/eventStore.ts'
import type {
  Change,
  ReadModels,
  Stored,
  Write,
  WritableCollection,
  WriteOptions,
} from '../ports/readModels.ts'
import { heapBytesOf } from '../loops/heapBytes.ts'
import { slices } from '../loops/slices.ts'
import { removeCleared } from './removeCleared.ts'
import { type Cleared, nameOf, NOTHING, type Projection } from './projection.ts'
import { SkippedFacts } from './skippedFacts.ts'
import { summaryWrites } from './summaries.ts'
import { Waiters } from './waiters.ts'

/** Documents that stay in memory between batches, because a run's start and end are usually close together. */
const KEPT_DOCS = 2048
const KEPT_BYTES = 4 << 20

/** The most pages of the log in one batch. */
const PAGES = 4

/** Events that are folded between two looks at the clock. */
const FOLDS_PER_LOOK = 16

/** The time for which a batch grows while no reader waits: it makes fewer and larger writes. */
const LINGER_MS = 100

export interface ProjectorOptions {
  /** The time for which a batch may grow while no reader is known to wait, milliseconds. */
  readonly lingerMs: () => number
  /** Called with each new position of a read model that has caught up once. */
  readonly onMoved: (name: string, position: Cursor) => void
  /** Called when the read model continues without a fact. The error names the fact. */
  readonly onSkipped: (name: string, error: unknown) => void
}

/** What a batch writes. */
interface Folded extends Pick<WriteOptions, 'summaries' | 'changes'> {
  readonly writes: readonly Write[]
}

/** The documents of a read model, and the facts that it continues without. */
interface Target {
  readonly collection: WritableCollection
  readonly skipped: SkippedFacts
}

/** The fold fails on a fact. It is pure, so only other documents or another build can change that. */
class Unfoldable extends PermanentError {
  readonly recorded: Recorded
  readonly reason: string

  constructor(recorded: Recorded, cause: unknown) {
    const { code, message } = unprocessable(recorded, messageOf(cause))
    super(code, message, { cause })
    this.recorded = recorded
    this.reason = messageOf(cause)
  }
}

/** The most facts that a read model continues without. More of them are a defect of the build, which stops it. */
const MAX_SKIPPED = 100

/** A cursor that only moved past other events is stored after this many batches. */
const IDLE_BATCHES = 256

/**
 * Keeps one read model at the end of the log. Invariants:
 * P1: documents and checkpoint change by whole batches; a batch that is applied twice changes nothing.
 * P2: `reach(cursor)` resolves when readers see everything up to the cursor (I2).
 * P3: readers wait until the read model has caught up with the log once (I8).
 * P4: no document takes an event twice, even when another projector of the collection is ahead of this one.
 * P5: a fact on which the fold fails is skipped after it was recorded for the operator, never without a trace.
 * P6: a fact that clears documents removes those of earlier facts only.
 */
export class Projector {
  readonly name: string
  readonly #projection: Projection
  readonly #readModels: ReadModels
  readonly #log: Pick<EventStore, 'subscribe'>
  readonly #docs = new BoundedMap<string, Stored>(KEPT_DOCS, KEPT_BYTES)
  readonly #waiting = new Waiters()
  readonly #options: ProjectorOptions
  #position: Cursor = START
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
      onMoved = () => {},
      onSkipped = () => {},
    }: { readModels: ReadModels; store: Pick<EventStore, 'subscribe'> } & Partial<ProjectorOptions>,
  ) {
    this.name = nameOf(projection)
    this.#options = { lingerMs, onMoved, onSkipped }
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
    return this.#waiting.wait(cursor, signal)
  }

  /** Writes the events collected so far, because a reader waits. */
  hurry(): void {
    this.#hurry?.()
  }

  /** Runs until the signal aborts; rejects when an engine refuses. `run` may be called again: it resumes. */
  async run(signal: AbortSignal): Promise<void> {
    this.#wholeAt ||= clock.monotonic()
    const collection = await this.#readModels.writer(this.#projection)
    this.#docs.clear()
    const skipped = await SkippedFacts.open(this.#readModels, this.name)
    const checkpoint = await collection.checkpoint()
    if (checkpoint === null) await skipped.clear()
    const position = checkpoint ?? START
    if (position < this.#position) this.#hasCaughtUp = false // the documents were removed: P3 applies again
    this.#position = position
    let unstored = 0
    const pages = this.#log.subscribe({ after: this.#position, types: this.#projection.handles, signal })
    for await (const { events, cursor, caughtUp } of this.#gathered(pages)) {
      const catchesUp: boolean = caughtUp && !this.#hasCaughtUp
      if (this.#concern(events) || ++unstored >= IDLE_BATCHES || catchesUp) {
        await this.#take({ collection, skipped }, events, cursor)
        unstored = 0
      }
      this.#position = cursor
      if (caughtUp) this.#wholeAt = clock.monotonic()
      this.#hasCaughtUp ||= catchesUp // P3
      if (this.#hasCaughtUp) {
        this.#waiting.release(cursor)
        this.#options.onMoved(this.name, cursor)
      }
      if (!caughtUp || this.#waiting.size > 0) continue
      await this.#linger(signal)
      await slices.take()
    }
  }

  /** Reads several pages as one batch while the projector is behind, which makes fewer and larger writes. */
  async *#gathered(pages: AsyncIterable<Batch>): AsyncGenerator<Batch> {
    let gathered: Batch['events'][] = []
    for await (const page of pages) {
      gathered.push(page.events)
      const awaited = this.#hasCaughtUp && this.#waiting.has(page.cursor)
      if (!page.caughtUp && !awaited && gathered.length < PAGES) continue
      yield { ...page, events: gathered.length === 1 ? page.events : gathered.flat() }
      gathered = []
    }
  }

  /** Folds events and stores the documents, in steps that end at each fact that clears documents (P6). */
  async #take(target: Target, events: readonly Recorded[], cursor: Cursor): Promise<void> {
    let from = 0
    for (let at = 0; this.#projection.clears && at < events.length; at++) {
      const recorded = events[at] as Recorded
      const cleared = this.#clearedBy(recorded)
      if (cleared.length === 0) continue
      const reached = at > from ? (events[at - 1] as Recorded).cursor : this.#position
      if (at > from) await this.#store(target, events.slice(from, at), reached)
      const forget = (id: string) => this.#docs.delete(id) // another projector may have kept the document (P4)
      for (const [part, each] of cleared.entries())
        await removeCleared(target.collection, each, { at: recorded.cursor, part, reached }, forget)
      from = at
    }
    await this.#store(target, from === 0 ? events : events.slice(from), cursor)
  }

  async #store({ collection, skipped }: Target, events: readonly Recorded[], cursor: Cursor): Promise<void> {
    const { writes, ...more } = await this.#foldable(collection, events, skipped)
    await collection.write(writes, cursor, more)
  }

  /** Folds a batch, without the facts on which the fold fails twice: the second time with the documents as stored. */
  async #foldable(
    collection: WritableCollection,
    events: readonly Recorded[],
    skipped: SkippedFacts,
  ): Promise<Folded> {
    let left = events
    let failedAt: Cursor | undefined
    for (;;) {
      try {
        return await this.#fold(collection, left)
      } catch (error) {
        if (!(error instanceof Unfoldable) || this.#projection.decidesAccess) throw error
        const { recorded, reason } = error
        this.#docs.clear()
        if (failedAt !== recorded.cursor) {
          failedAt = recorded.cursor
          continue
        }
        if ((await skipped.count()) >= MAX_SKIPPED) throw error
        await skipped.add(recorded, reason) // P5
        this.#options.onSkipped(this.name, error)
        left = left.filter(({ cursor }) => cursor !== recorded.cursor)
      }
    }
  }

  async #fold(collection: WritableCollection, events: readonly Recorded[]): Promise<Folded> {
    const wait = slices.take()
    if (wait) await wait
    const touched = events.map((recorded) => ({ recorded, ids: this.#idsOf(recorded) }))
    const known = new Map<string, Stored>()
    const unknown = new Set<string>()
    const begun = new Set<string>()
    for (const { recorded, ids } of touched) {
      for (const id of ids) {
        const kept = known.get(id) ?? this.#docs.get(id)
        if (kept) known.set(id, kept)
        else if (this.#projection.begins?.(recorded) && !unknown.has(id)) begun.add(id)
        else if (!begun.has(id)) unknown.add(id)
      }
    }
    if (unknown.size > 0) {
      for (const [id, stored] of await collection.stored([...unknown])) {
        known.set(id, stored)
        this.#keep(id, stored)
      }
    }
    const folded = new Map<string, Stored>()
    const changes: Change[] | undefined =
      this.#projection.summarize || collection.wantsChanges ? [] : undefined
    let n = 0
    for (const { recorded, ids } of touched) {
      const wait = ++n % FOLDS_PER_LOOK === 0 ? slices.take() : null
      if (wait) await wait
      for (const id of ids) {
        const before = folded.get(id) ?? known.get(id)
        if (before && recorded.cursor <= before.cursor) continue // P4
        const doc = this.#evolve(before?.doc ?? null, recorded, id)
        changes?.push({ before: before?.doc ?? null, after: doc, cursor: recorded.cursor })
        folded.set(id, { doc, cursor: recorded.cursor })
      }
    }
    const writes: Write[] = []
    for (const [id, after] of folded) {
      this.#keep(id, after)
      if (this.#projection.isBrief && after.doc === null && begun.has(id)) continue
      writes.push({ id, ...after })
    }
    if (!changes) return { writes }
    const summarized = this.#projection.summarize?.(changes)
    const summaries = summarized ? await summaryWrites(collection, summarized) : []
    return { writes, summaries, ...(collection.wantsChanges && { changes }) }
  }

  #keep(id: string, stored: Stored): void {
    this.#docs.set(id, stored, heapBytesOf(stored.doc))
  }

  /** Whether one of the events changes a document. A fold that fails concerns the read model too. */
  #concern(events: readonly Recorded[]): boolean {
    try {
      return events.some(
        (recorded) => this.#idsOf(recorded).length > 0 || this.#clearedBy(recorded).length > 0,
      )
    } catch {
      return true
    }
  }

  #clearedBy(recorded: Recorded): readonly Cleared[] {
    try {
      return this.#projection.clears?.(recorded) ?? NOTHING
    } catch (error) {
      throw new Unfoldable(recorded, error)
    }
  }

  #idsOf(recorded: Recorded): readonly string[] {
    try {
      return this.#projection.idsOf(recorded)
    } catch (error) {
      throw new Unfoldable(recorded, error)
    }
  }

  /** An error of the fold is the fault of the fact, so the new error names the fact. */
  #evolve(doc: Stored['doc'], recorded: Recorded, id: string): Stored['doc'] {
    try {
      return this.#projection.evolve(doc, recorded, id)
    } catch (error) {
      throw new Unfoldable(recorded, error)
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
