import type { Doc, Found, Query } from '../../ports/readModels.ts'
import { type Bound, boundsOf } from './bounds.ts'
import { type Column, columnOf, compareColumns, fieldOf, sameColumn } from './columns.ts'

/**
 * Answers a query without an index in the live version: the code is newer, and its own version is still
 * being filled. Reads every document of the live version, which is slow but correct.
 */
export const findUnindexed = async (
  rows: AsyncIterable<{ readonly id: string; readonly doc: Doc }>,
  query: Query,
): Promise<Found<Doc>> => {
  const bounds = boundsOf(query)
  const equal = Object.entries(query.equal).map(([field, value]) => [field, columnOf(value)] as const)
  const found: { doc: Doc; id: string; sort: Column }[] = []
  for await (const { doc, id } of rows) {
    const sort = comparable(doc, query.sort)
    const matches =
      equal.every(([field, value]) => sameColumn(comparable(doc, field), value)) &&
      bounds.every((bound) => isWithin(sort, bound))
    if (matches) found.push({ doc, id, sort })
  }
  found.sort((a, b) => compareColumns(a.sort, b.sort) || compareColumns(a.id, b.id))
  if (query.descending) found.reverse()
  return {
    items: found.slice(query.offset, query.offset + query.limit).map(({ doc }) => doc),
    total: found.length,
  }
}

const comparable = (doc: Doc, field: string): Column => {
  const value = fieldOf(doc, field)
  return typeof value === 'object' ? null : columnOf(value) // the field was not indexed in this version
}

const isWithin = (column: Column, [operator, bound]: Bound): boolean =>
  column !== null &&
  (operator === '<' ? compareColumns(column, bound) < 0 : compareColumns(column, bound) >= 0)
