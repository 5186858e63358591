import type { Cursor } from '../events/event.ts'
import { everyDoc } from '../loops/everyDoc.ts'
import type { Stored, WritableCollection, Write } from '../ports/readModels.ts'
import type { Cleared } from './projection.ts'

/** Documents that are removed in one write. */
const PER_WRITE = 100

/**
 * Removes the documents that a fact `at` a position clears. The read model contains everything up to `reached`. `onRemoved`
 * is called for each removal, before it is stored.
 */
export const removeCleared = async (
  collection: WritableCollection,
  { id, keeps, ...query }: Cleared,
  { at, reached }: { readonly at: Cursor; readonly reached: Cursor },
  onRemoved: (id: string, removed: Stored) => void,
): Promise<void> => {
  let writes: Write[] = []
  const store = async (): Promise<void> => {
    if (writes.length === 0) return
    for (const { id, ...removed } of writes) onRemoved(id, removed)
    await collection.write(writes, reached)
    writes = []
  }
  for await (const doc of everyDoc(collection, { ...query, id })) {
    if (keeps?.(doc)) continue
    writes.push({ id: id(doc), doc: null, cursor: at })
    if (writes.length === PER_WRITE) await store()
  }
  await store()
}
