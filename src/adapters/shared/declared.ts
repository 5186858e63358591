import type { CollectionSpec, Query } from '../../ports/readModels.ts'
import { boundsOf } from './bounds.ts'

/** Identifies an index. The order of its `equal` fields does not matter. */
export const indexKey = (equal: readonly string[], sort: string): string =>
  [...equal.toSorted(), '', sort].join('\n')

/** Throws if no declared index of the collection matches the query, which is a mistake of the calling code. */
export const refuseUndeclared = ({ name, version, indexes }: CollectionSpec, query: Query): void => {
  const key = indexKey(Object.keys(query.equal), query.sort)
  const index = indexes.find(({ equal, sort }) => indexKey(equal, sort) === key)
  if (index && (!index.sparse || boundsOf(query).length > 0)) return
  throw new Error(
    `Expected a query that an index of ${name} v${version} serves, got ${JSON.stringify(query)}`,
  )
}
