import { BoundedMap } from '../boundedMap.ts'
import { reads } from './slices.ts'
import type { Collection, Doc, Query } from '../ports/readModels.ts'

/** Documents per query. */
const PAGE = 100
/** Documents that are recognized when they have moved to a later place. A list may have millions. */
const RECOGNIZED = 10_000

/**
 * Yields every matching document in the order of its `sort` field, a string. Each page starts at the last value of the
 * previous page, because offsets would skip documents when the list gets shorter. A document that soon moves to a later
 * place is yielded once; one that moves back past the reader is missed. Other work continues between the pages.
 */
export async function* everyDoc<D extends Doc>(
  collection: Pick<Collection<D>, 'find'>,
  {
    id,
    sort,
    from,
    ...query
  }: Pick<Query, 'equal' | 'before'> & {
    /** The field that identifies a document, or its id. */
    readonly id: (keyof D & string) | ((doc: D) => string)
    readonly sort: keyof D & string
    readonly from?: string
  },
): AsyncGenerator<D> {
  const seen = new BoundedMap<unknown, true>(RECOGNIZED)
  let same: ReadonlySet<unknown> = new Set() // those with the value of `start`
  const idOf = (doc: D): unknown => (typeof id === 'function' ? id(doc) : doc[id])
  for (let start = from, ties = 0; ;) {
    const wait = reads.take()
    if (wait) await wait
    const limit = PAGE + ties // documents with the value of `start` are returned again
    const { items } = await collection.find({
      ...query,
      sort,
      ...(start !== undefined && { from: start }),
      limit,
      offset: 0,
      totals: false,
    })
    for (const doc of items) {
      const known = idOf(doc)
      if (same.has(known) || seen.get(known)) continue
      seen.set(known, true)
      yield doc
    }
    if (items.length < limit) return
    start = String(items.at(-1)?.[sort])
    const last = items.filter((doc) => doc[sort] === start)
    same = new Set(last.map(idOf))
    ties = last.length
  }
}
