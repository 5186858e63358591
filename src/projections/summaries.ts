import type { Cursor } from '../events/event.ts'
import { slices } from '../loops/slices.ts'
import type { Change, Doc, Stored, WritableCollection, Write } from '../ports/readModels.ts'

/** Summaries that are read and folded before other work continues: about a millisecond. */
const PER_READ = 50

/** The changes of one batch that concern one summary. */
export interface Summary {
  /** The cursor of the newest of the changes. */
  readonly cursor: Cursor
  /** Returns the summary with the changes that are newer than what is stored. */
  evolve(this: void, stored: Stored | undefined): Doc | null
}

/** Collects the changes of one batch, so that other work continues between them. */
export interface Summarizer<D extends Doc = Doc> {
  add(change: Change<D>): void
  /** Complete when all changes were added. */
  readonly summaries: ReadonlyMap<string, Summary>
}

/**
 * Returns the writes of the summaries of a read model, which are documents beside the others. A change is only known while
 * its document is folded, so summaries are exact in any number of repetitions only by these rules:
 * S1: summaries are stored before the documents: a document that contains an event proves that its summaries do.
 * S2: they are read after the documents, and never from memory.
 * S3: a change counts only if it is newer than the stored summary. A summary is written for each change, also for those
 *     that cancel each other out, so that its cursor is that of its newest change.
 */
export const summaryWrites = async (
  collection: Pick<WritableCollection, 'stored'>,
  summaries: ReadonlyMap<string, Summary>,
): Promise<Write[]> => {
  const writes: Write[] = []
  const all = [...summaries]
  for (let from = 0; from < all.length; from += PER_READ) {
    const wait = slices.take()
    if (wait) await wait
    const some = all.slice(from, from + PER_READ)
    const stored = await collection.stored(some.map(([id]) => id)) // S2
    for (const [id, { cursor, evolve }] of some) {
      const before = stored.get(id)
      if (before && cursor <= before.cursor) continue // S3
      writes.push({ id, doc: evolve(before), cursor })
    }
  }
  return writes
}
