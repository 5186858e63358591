import type { Cursor } from '../events/event.ts'
import type { Doc, Stored, WritableCollection, Write } from '../ports/readModels.ts'

/** The changes of one batch that concern one summary. */
export interface Summary {
  /** The cursor of the newest of the changes. */
  readonly cursor: Cursor
  /** Returns the summary with the changes that are newer than what is stored. */
  evolve(this: void, stored: Stored | undefined): Doc | null
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
  if (summaries.size === 0) return []
  const stored = await collection.stored([...summaries.keys()]) // S2
  const writes: Write[] = []
  for (const [id, { cursor, evolve }] of summaries) {
    const before = stored.get(id)
    if (before && cursor <= before.cursor) continue // S3
    writes.push({ id, doc: evolve(before), cursor })
  }
  return writes
}
