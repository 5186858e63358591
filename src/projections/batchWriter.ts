import { BoundedMap } from '../boundedMap.ts'
import { messageOf, PermanentError } from '../errors.ts'
import type { Cursor, Recorded } from '../events/event.ts'
import { unprocessable } from '../events/upcast.ts'
import { heapBytesOf } from '../loops/heapBytes.ts'
import { slices } from '../loops/slices.ts'
import type { Change, Stored, WritableCollection, Write, WriteOptions } from '../ports/readModels.ts'
import type { Parts } from './parts.ts'
import { type Cleared, NOTHING, type Projection } from './projection.ts'
import { removeCleared } from './removeCleared.ts'
import type { SkippedFacts } from './skippedFacts.ts'
import { summaryWrites } from './summaries.ts'

/** Documents that stay in memory between batches, because a run's start and end are usually close together. */
const KEPT_DOCS = 2048
const KEPT_BYTES = 4 << 20

/** Events that are folded between two looks at the clock. */
const FOLDS_PER_LOOK = 16

/** What a batch writes. */
interface Folded extends Pick<WriteOptions, 'summaries' | 'changes'> {
  readonly writes: readonly Write[]
}

/** An event with the documents that it changes. */
interface Touched {
  readonly recorded: Recorded
  readonly ids: readonly string[]
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

interface Deps {
  readonly projection: Projection
  readonly collection: WritableCollection
  readonly skipped: SkippedFacts
  /** Of all writers of a projector. */
  readonly parts: Parts
  /** Called when the read model continues without a fact. The error names the fact. */
  readonly onSkipped: (error: unknown) => void
}

/**
 * Writes the documents of one read model from batches of events. Invariants:
 * P1: documents and checkpoint change by whole parts of a batch; a part that is applied twice changes nothing.
 * P4: no document takes an event twice, even when another projector of the collection is ahead of this one.
 * P5: a fact on which the fold fails is skipped after it was recorded for the operator, never without a trace.
 * P6: a fact that clears documents removes those of earlier facts only.
 */
export class BatchWriter {
  readonly #projection: Projection
  readonly #collection: WritableCollection
  readonly #skipped: SkippedFacts
  readonly #parts: Parts
  readonly #onSkipped: Deps['onSkipped']
  readonly #docs = new BoundedMap<string, Stored>(KEPT_DOCS, KEPT_BYTES)

  constructor({ projection, collection, skipped, parts, onSkipped }: Deps) {
    this.#projection = projection
    this.#collection = collection
    this.#skipped = skipped
    this.#parts = parts
    this.#onSkipped = onSkipped
  }

  /**
   * Folds events and stores the documents. The read model contains everything up to `reached` before, and up to `cursor`
   * afterwards. `onStored` is called with the position after each part.
   */
  async store(
    events: readonly Recorded[],
    { reached, cursor, onStored }: { reached: Cursor; cursor: Cursor; onStored: (position: Cursor) => void },
  ): Promise<void> {
    let before = reached
    await this.#parts.store(events, async (part, isLast) => {
      const after = isLast ? cursor : (part.at(-1)?.cursor ?? cursor)
      await this.#storePart(part, { reached: before, cursor: after })
      before = after
      onStored(after)
    })
  }

  /** The same in steps that end at each fact that clears documents (P6). */
  async #storePart(
    events: readonly Recorded[],
    { reached, cursor }: { reached: Cursor; cursor: Cursor },
  ): Promise<void> {
    let from = 0
    for (let at = 0; this.#projection.clears && at < events.length; at++) {
      const recorded = events[at] as Recorded
      const cleared = this.#clearedBy(recorded)
      if (cleared.length === 0) continue
      const before = at > from ? (events[at - 1] as Recorded).cursor : reached
      if (at > from) await this.#write(events.slice(from, at), before)
      const forget = (id: string) => this.#docs.delete(id) // another projector may have kept the document (P4)
      for (const [part, each] of cleared.entries())
        await removeCleared(this.#collection, each, { at: recorded.cursor, part, reached: before }, forget)
      from = at
    }
    await this.#write(from === 0 ? events : events.slice(from), cursor)
  }

  async #write(events: readonly Recorded[], cursor: Cursor): Promise<void> {
    const { writes, ...more } = await this.#foldable(events)
    await this.#collection.write(writes, cursor, more)
  }

  /** Folds a batch, without the facts on which the fold fails twice: the second time with the documents as stored. */
  async #foldable(events: readonly Recorded[]): Promise<Folded> {
    let left = events
    let failedAt: Cursor | undefined
    for (;;) {
      try {
        return await this.#fold(left)
      } catch (error) {
        if (!(error instanceof Unfoldable) || this.#projection.decidesAccess) throw error
        const { recorded, reason } = error
        this.#docs.clear()
        if (failedAt !== recorded.cursor) {
          failedAt = recorded.cursor
          continue
        }
        if ((await this.#skipped.count()) >= MAX_SKIPPED) throw error
        await this.#skipped.add(recorded, reason) // P5
        this.#onSkipped(error)
        left = left.filter(({ cursor }) => cursor !== recorded.cursor)
      }
    }
  }

  async #fold(events: readonly Recorded[]): Promise<Folded> {
    const wait = slices.take()
    if (wait) await wait
    const touched = events.map((recorded) => ({ recorded, ids: this.#idsOf(recorded) }))
    const { known, begun } = await this.#documents(touched)
    const folded = new Map<string, Stored>()
    const changes: Change[] | undefined = this.#collection.wantsChanges ? [] : undefined
    const summarizer = this.#projection.summarize?.()
    let n = 0
    for (const { recorded, ids } of touched) {
      const wait = ++n % FOLDS_PER_LOOK === 0 ? slices.take() : null
      if (wait) await wait
      for (const id of ids) {
        const before = folded.get(id) ?? known.get(id)
        if (before && recorded.cursor <= before.cursor) continue // P4
        const doc = this.#evolve(before?.doc ?? null, recorded, id)
        const change = { before: before?.doc ?? null, after: doc, cursor: recorded.cursor }
        changes?.push(change)
        summarizer?.add(change)
        folded.set(id, { doc, cursor: recorded.cursor })
      }
    }
    const writes: Write[] = []
    for (const [id, after] of folded) {
      this.#keep(id, after)
      if (this.#projection.isBrief && after.doc === null && begun.has(id)) continue
      writes.push({ id, ...after })
    }
    const summaries = summarizer ? await summaryWrites(this.#collection, summarizer.summaries) : []
    return { writes, summaries, ...(changes && { changes }) }
  }

  /** The documents that the events change. Those that an event begins are not stored yet. */
  async #documents(touched: readonly Touched[]): Promise<{ known: Map<string, Stored>; begun: Set<string> }> {
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
      for (const [id, stored] of await this.#collection.stored([...unknown])) {
        known.set(id, stored)
        this.#keep(id, stored)
      }
    }
    return { known, begun }
  }

  #keep(id: string, stored: Stored): void {
    if (this.#collection.remembers) return
    this.#docs.set(id, stored, heapBytesOf(stored.doc))
  }

  /** Whether one of the events changes a document. A fold that fails concerns the read model too. */
  concern(events: readonly Recorded[]): boolean {
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
}
