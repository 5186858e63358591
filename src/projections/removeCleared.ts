import type { Cursor } from '../events/event.ts'
import { everyDoc } from '../loops/everyDoc.ts'
import type { Change, Doc, WritableCollection, Write } from '../ports/readModels.ts'
import type { Cleared } from './projection.ts'

/** Documents that are removed in one write. */
const PER_WRITE = 100

/** Where a removal is in the log: a fact may clear several sets of documents, of which this is number `part`. */
interface Place {
  readonly at: Cursor
  readonly part: number
  /** The read model contains everything up to here. */
  readonly reached: Cursor
}

/** Removes the documents that a fact clears. `onRemoved` is called for each removal, before it is stored. */
export const removeCleared = async (
  collection: WritableCollection,
  { id, keeps, ...query }: Cleared,
  { at, part, reached }: Place,
  onRemoved: (id: string) => void,
): Promise<void> => {
  let docs: Doc[] = []
  const store = async (): Promise<void> => {
    if (docs.length === 0) return
    const writes = docs.map((doc): Write => ({ id: id(doc), doc: null, cursor: at }))
    for (const { id } of writes) onRemoved(id)
    if (!collection.wantsChanges) await collection.write(writes, reached)
    else {
      const stored = await collection.stored(writes.map((write) => write.id))
      const changes = docs.flatMap((doc): Change[] => {
        const before = stored.get(id(doc))
        if (!before?.doc || before.cursor >= at) return []
        const cursor = `${at}/${padded(part)}/${hex(doc[query.sort])}/${hex(id(doc))}`
        return [{ before: before.doc, after: null, cursor }]
      })
      await collection.write(writes, reached, { changes })
    }
    docs = []
  }
  for await (const doc of everyDoc(collection, { ...query, id })) {
    if (keeps?.(doc)) continue
    docs.push(doc)
    if (docs.length === PER_WRITE) await store()
  }
  await store()
}

/**
 * The removals of one fact take several writes, so each has a position of its own: after the fact, before the next one, and
 * in the order of the removals.
 */
const padded = (part: number): string => String(part).padStart(6, '0')
const hex = (value: unknown): string => Buffer.from(String(value)).toString('hex')
