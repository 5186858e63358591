import type { Collection, Doc, Query } from '../ports/readModels.ts'

/** Documents asked for at a time. */
const PAGE = 100

/**
 * Yields every document that matches, in the order of its `sort` field, which must be a string. Each page starts at the
 * last value of the page before: by offset, a list that gets shorter between pages would skip documents. A document is
 * yielded once even if it moves to a later place; one that moves back past the reader is missed.
 */
export async function* everyDoc<D extends Doc>(
  collection: Pick<Collection<D>, 'find'>,
  {
    id,
    sort,
    from,
    ...query
  }: Pick<Query, 'equal' | 'before'> & {
    /** The field that identifies a document among those that match. */
    readonly id: keyof D & string
    readonly sort: keyof D & string
    readonly from?: string
  },
): AsyncGenerator<D> {
  const seen = new Set<unknown>()
  for (let start = from, ties = 0; ;) {
    const limit = PAGE + ties // those that share the value of `start` come again
    const { items } = await collection.find({
      ...query,
      sort,
      ...(start !== undefined && { from: start }),
      limit,
      offset: 0,
    })
    for (const doc of items) {
      if (seen.has(doc[id])) continue
      seen.add(doc[id])
      yield doc
    }
    if (items.length < limit) return
    start = String(items.at(-1)?.[sort])
    ties = items.filter((doc) => doc[sort] === start).length
  }
}
