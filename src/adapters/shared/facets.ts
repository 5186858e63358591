import type { CollectionSpec, Query } from '../../ports/readModels.ts'
import { successorOf } from './bounds.ts'
import { type Column, columnOf } from './columns.ts'

/** A counted index: its documents are counted by the values of its `equal` fields, and by prefixes of its `sort` field. */
export interface CountedIndex {
  readonly name: string
  readonly fields: readonly string[]
  readonly sort: string
  /** Lengths of the prefixes that have their own counts, shortest first. */
  readonly steps: readonly number[]
}

const nameOf = (fields: readonly string[]): string => fields.toSorted().join('\n')

export const countedIndexes = ({ indexes }: CollectionSpec): ReadonlyMap<string, CountedIndex> =>
  new Map(
    indexes
      .filter(({ counted }) => counted)
      .map(({ equal, sort, steps = [] }) => [
        nameOf(equal),
        { name: nameOf(equal), fields: equal.toSorted(), sort, steps },
      ]),
  )

/** Returns the counted index that has the total of a query without bounds. */
export const countedBy = (
  indexes: ReadonlyMap<string, CountedIndex>,
  { equal }: Query,
): CountedIndex | undefined => indexes.get(nameOf(Object.keys(equal)))

export const facetAsked = ({ name, fields }: CountedIndex, { equal }: Query): string =>
  facetOf(
    name,
    fields.map((field) => columnOf(equal[field])),
  )

/**
 * Returns a text that identifies a list of values: equal for equal values, different for others. Lengths
 * separate the parts and a letter marks the type; JSON would be five times slower.
 */
export const facetOf = (group: string, columns: readonly Column[]): string => {
  let facet = group
  for (const column of columns) {
    if (typeof column === 'string') facet += `\ns${column.length}:${column}`
    else if (column === null) facet += '\n-'
    else facet += column instanceof Uint8Array ? `\nb${column[0]}` : `\nn${column}`
  }
  return facet
}

/** The key of the counts of a prefix: it follows the text of a facet. No column begins with this character. */
export const stepKey = (facet: string, length: number, step: string): string => `${facet}\n@${length}:${step}`

/** A side of a text in the order of the sort field: which counts of steps are those of documents there. */
export interface Side {
  /** The keys between which the counts of a level are, without the step of the text. */
  readonly between: (step: string, within: string) => readonly [first: string, end: string]
  /** Whether a step is there, by what follows their common prefix in it and in the text. */
  readonly has: (each: string, rest: string) => boolean
}

/** The key of a step has a successor. */
const endOf = (key: string): string => successorOf(key) as string

export const AFTER: Side = {
  between: (step, within) => [endOf(step), endOf(within)],
  has: (each, rest) => each > rest && !each.startsWith(rest),
}

export const BEFORE: Side = {
  between: (step, within) => [within, step],
  has: (each, rest) => each < rest,
}

/** Documents on a side that are counted without reading them, and the step of the text, whose documents are not among them. */
export interface Beside {
  readonly count: number
  readonly step: string
}

/** Documents that are counted without reading them, and the value of the sort field where they end. */
export interface Passed {
  readonly count: number
  readonly before: string
}

export const passed = (count: number, step: string): Passed | undefined => {
  const before = successorOf(step)
  return typeof before === 'string' ? { count, before } : undefined
}
