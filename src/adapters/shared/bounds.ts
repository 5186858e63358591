import type { Query } from '../../ports/readModels.ts'
import { type Column, compareColumns, LEAST_BLOB, LEAST_TEXT } from './columns.ts'

export type Bound = readonly [operator: '>=' | '<', column: Column]

/**
 * The condition of a query on its sort field: none, or one lower and one upper bound, because SQLite uses one of
 * each in an index. A bound matches only values of its own type.
 */
export const boundsOf = ({ from, before, prefix }: Query): Bound[] => {
  const lower: Column[] = []
  const upper: Column[] = []
  if (from !== undefined) {
    lower.push(from)
    upper.push(ceilingOf(from))
  }
  if (before !== undefined) {
    lower.push(floorOf(before))
    upper.push(before)
  }
  if (prefix !== undefined) {
    lower.push(prefix)
    upper.push(successorOf(prefix))
  }
  const [least] = lower.sort(compareColumns).reverse()
  const [most] = upper.sort(compareColumns)
  return least === undefined || most === undefined
    ? []
    : [
        ['>=', least],
        ['<', most],
      ]
}

/** The query has no upper bound. */
export const isOpen = ({ before, prefix }: Query): boolean => before === undefined && prefix === undefined

/** The query ends before a text, and its beginning is one too, or that of all texts. */
export const isBelow = (query: Query): query is Query & { readonly from?: string; readonly before: string } =>
  typeof query.before === 'string' && typeof query.from !== 'number' && query.prefix === undefined

const floorOf = (bound: string | number): Column => (typeof bound === 'string' ? LEAST_TEXT : -Infinity)

const ceilingOf = (bound: string | number): Column => (typeof bound === 'string' ? LEAST_BLOB : LEAST_TEXT)

const LAST_BEFORE_SURROGATES = 0xd7ff
const FIRST_AFTER_SURROGATES = 0xe000
const LAST = 0x10ffff

/** Returns the smallest value after every text with this prefix, in code point order. */
export const successorOf = (prefix: string): Column => {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0)
  for (let point = points.pop(); point !== undefined; point = points.pop()) {
    if (point === LAST) continue
    return String.fromCodePoint(
      ...points,
      point === LAST_BEFORE_SURROGATES ? FIRST_AFTER_SURROGATES : point + 1,
    )
  }
  return LEAST_BLOB
}
