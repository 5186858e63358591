import type { Doc, Found, Query, Stored } from '../../ports/readModels.ts'
import { boundsOf } from './bounds.ts'
import { type Column, columnOf, compareColumns, fieldOf } from './columns.ts'

/** Matching documents that are kept beyond the page before they are sorted. */
const UNSORTED = 1000

interface Match {
  readonly id: string
  readonly doc: Doc
  readonly column: Column
}

/**
 * Answers a query from all documents. Documents of an earlier version may have no index for it, until those of the present
 * version are built.
 */
export const scanFor = async (
  query: Query,
  entries: AsyncIterable<readonly [id: string, stored: Stored]>,
): Promise<Found<Doc>> => {
  const matches = matcherOf(query)
  const end = query.offset + query.limit
  const before = orderOf(query)
  let nearest: Match[] = []
  let total = 0
  for await (const [id, { doc }] of entries) {
    const column = doc && matches(doc)
    if (!doc || column === undefined) continue
    total++
    nearest.push({ id, doc, column })
    if (nearest.length >= end + UNSORTED) nearest = nearest.toSorted(before).slice(0, end)
  }
  const page = nearest.toSorted(before).slice(query.offset, end)
  return { items: page.map(({ doc }) => doc), total }
}

/** Returns a function that returns the sort field of a matching document; undefined for others. */
const matcherOf = (query: Query): ((doc: Doc) => Column | undefined) => {
  const equal = Object.entries(query.equal).map(([field, value]) => [field, columnOf(value)] as const)
  const bounds = boundsOf(query)
  return (doc) => {
    for (const [field, value] of equal) {
      const column = columnIn(doc, field)
      if (column === undefined || compareColumns(column, value) !== 0) return undefined
    }
    const column = columnIn(doc, query.sort)
    const isWithin = bounds.every(
      ([operator, bound]) => column !== undefined && compareColumns(column, bound) < 0 === (operator === '<'),
    )
    return isWithin ? column : undefined
  }
}

/** A field that had no index may be an object or array: no query finds it. */
const columnIn = (doc: Doc, field: string): Column | undefined => {
  const value = fieldOf(doc, field)
  return typeof value === 'object' && value !== null ? undefined : columnOf(value)
}

const orderOf = ({ descending }: Query): ((a: Match, b: Match) => number) => {
  const sign = descending ? -1 : 1
  return (a, b) => sign * (compareColumns(a.column, b.column) || compareColumns(a.id, b.id))
}
