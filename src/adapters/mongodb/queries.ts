import type { Document, Filter, IndexDescription } from 'mongodb'
import type { Cursor } from '../../events/event.ts'
import type { CollectionSpec, Query } from '../../ports/readModels.ts'
import { successorOf } from '../shared/bounds.ts'
import { indexKey } from '../shared/declared.ts'
import { type Envelope, scalarOf } from './envelope.ts'

const pathOf = (field: string): string => `last.f.${field}`
const nameOf = (index: number): string => `i${index}`

/** Every index begins with `gone`, which skips removed documents, and ends with the id, which breaks ties. */
export const indexesOf = ({ indexes }: CollectionSpec): (IndexDescription & { name: string })[] =>
  indexes.map(({ equal, sort, sparse }, index) => ({
    name: nameOf(index),
    key: {
      'last.gone': 1,
      ...Object.fromEntries([...equal, sort].map((field) => [pathOf(field), 1])),
      _id: 1,
    },
    ...(sparse ? { partialFilterExpression: { [pathOf(sort)]: { $exists: true } } } : {}),
  }))

/** Matches the documents that were not removed. */
export const present: Filter<Envelope> = { 'last.gone': false }

/** Matches removals up to a cursor. A sparse index has none of them, and a collection without another index has few documents. */
export const removedUpTo = (
  { indexes }: CollectionSpec,
  upTo: Cursor,
): { readonly filter: Filter<Envelope>; readonly hint: string | undefined } => {
  const index = indexes.findIndex(({ sparse }) => !sparse)
  return {
    filter: { 'last.gone': true, 'last.cursor': { $lte: upTo } },
    hint: index < 0 ? undefined : nameOf(index),
  }
}

export interface Command {
  readonly filter: Filter<Envelope>
  readonly sort: Record<string, 1 | -1>
  /** The index to use. The planner does not choose, because several indexes can look equal to it. */
  readonly hint: string
}

/** Returns the command that answers the query with an index. */
export const commandOf = ({ indexes }: CollectionSpec, query: Query): Command => {
  const key = indexKey(Object.keys(query.equal), query.sort)
  const index = indexes.findIndex(({ equal, sort }) => indexKey(equal, sort) === key)
  const equal = Object.entries(query.equal).map(([field, value]) => [pathOf(field), scalarOf(value)])
  const conditions = conditionsOf(query).map((condition) => ({ [pathOf(query.sort)]: condition }))
  const direction = query.descending ? -1 : 1
  return {
    filter: {
      ...present,
      ...(Object.fromEntries(equal) as Filter<Envelope>),
      ...(conditions.length > 0 ? { $and: conditions } : {}),
    },
    sort: { [pathOf(query.sort)]: direction, _id: direction },
    hint: nameOf(index),
  }
}

/** MongoDB compares only values of the bound's own type, as the port requires. */
const conditionsOf = ({ from, before, prefix }: Query): Document[] => [
  ...(from === undefined ? [] : [{ $gte: from }]),
  ...(before === undefined ? [] : [{ $lt: before }]),
  ...(prefix === undefined ? [] : [{ $gte: prefix }]),
  ...(prefix === undefined ? [] : upTo(successorOf(prefix))),
]

const upTo = (bound: unknown): Document[] => (typeof bound === 'string' ? [{ $lt: bound }] : [])
