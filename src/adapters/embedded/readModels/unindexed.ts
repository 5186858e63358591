import { setImmediate as turn } from 'node:timers/promises'
import type { Doc, Found, Query } from '../../../ports/readModels.ts'
import { type Bound, boundsOf } from './bounds.ts'
import { type Column, columnOf, compareColumns, fieldOf, sameColumn } from './columns.ts'
import type { Table } from './table.ts'

const SLICE = 500

/**
 * A query that the live version has no index for: the code is newer than it, and its own version is still
 * being filled. Slow, in slices between which other work goes on, and right.
 */
export const findUnindexed = async (table: Table, query: Query): Promise<Found<Doc>> => {
  const bounds = boundsOf(query)
  const equal = Object.entries(query.equal).map(([field, value]) => [field, columnOf(value)] as const)
  const found: { doc: Doc; id: string; sort: Column }[] = []
  for await (const { doc, id } of rowsOf(table)) {
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

/** Every document of one version, which stays while it is read even if another goes live. */
export async function* rowsOf(table: Table): AsyncGenerator<{ id: string; doc: Doc }> {
  const release = table.retain()
  try {
    for (let after = 0; ;) {
      const { rows, last } = table.slice(after, SLICE)
      if (rows.length === 0) return
      yield* rows
      after = last
      await turn()
    }
  } finally {
    release()
  }
}

const comparable = (doc: Doc, field: string): Column => {
  const value = fieldOf(doc, field)
  return typeof value === 'object' ? null : columnOf(value) // the field was not indexed in this version
}

const isWithin = (column: Column, [operator, bound]: Bound): boolean =>
  column !== null &&
  (operator === '<' ? compareColumns(column, bound) < 0 : compareColumns(column, bound) >= 0)
