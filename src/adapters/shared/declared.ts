import type { CollectionSpec, Query } from '../../ports/readModels.ts'
import { boundsOf } from './bounds.ts'

/** Identifies an index. The order of its `equal` fields does not matter. */
export const indexKey = (equal: readonly string[], sort: string): string =>
  [...equal.toSorted(), '', sort].join('\n')

export const sameIndexes = (a: CollectionSpec['indexes'], b: CollectionSpec['indexes']): boolean =>
  JSON.stringify(a) === JSON.stringify(b)

/** Whether an index matches the query. */
export const isIndexed = ({ indexes }: CollectionSpec, query: Query): boolean => {
  const key = indexKey(Object.keys(query.equal), query.sort)
  const index = indexes.find(({ equal, sort }) => indexKey(equal, sort) === key)
  return index !== undefined && (!index.sparse || boundsOf(query).length > 0)
}

/** Throws if no declared index of the collection matches the query, which is a mistake of the calling code. */
export const refuseUndeclared = (spec: CollectionSpec, query: Query): void => {
  if (isIndexed(spec, query)) return
  const { name, version } = spec
  throw new Error(
    `Expected a query that an index of ${name} v${version} serves, got ${JSON.stringify(query)}`,
  )
}
