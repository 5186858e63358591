import type { Collection, CollectionSpec, Doc, Found, Query } from '../../../ports/readModels.ts'
import { isIndexed, refuseUndeclared, sameIndexes } from '../../shared/declared.ts'
import { scanFor } from '../../shared/scanFor.ts'
import type { Guard } from './guard.ts'
import { countOf, entriesOf, rowsOf } from './rows.ts'
import type { Table } from './table.ts'

interface Source {
  readonly guard: Guard
  /** The table that the version has now. */
  readonly tableNow: () => Table
  /** Whether a thread fills the version: it looks empty meanwhile. */
  readonly isApart: () => boolean
}

/** The reads of one version of a collection, which may get another table between them. */
export const collectionOf = <D extends Doc>(
  spec: CollectionSpec,
  { guard, tableNow, isApart }: Source,
): Collection<D> => {
  const table = () => guard.run(tableNow)
  /** The table that was found to have all indexes. */
  let indexed: Table | undefined
  const find = async (query: Query): Promise<Found<Doc>> => {
    refuseUndeclared(spec, query)
    const seen = table()
    if (seen !== indexed && sameIndexes(seen.spec.indexes, spec.indexes)) indexed = seen
    if (seen === indexed || isIndexed(seen.spec, query)) return guard.run(() => seen.find(query))
    try {
      return await scanFor(query, entriesOf(seen))
    } catch (error) {
      return guard.refuse(error)
    }
  }
  return {
    get: async (id) => guard.run(() => tableNow().get(id)) as D | null,
    getMany: async (ids) => {
      const seen = table()
      return guard.run(() => byId(ids, (id) => seen.get(id))) as Map<string, D>
    },
    find: find as Collection<D>['find'],
    scan: async function* () {
      const rows = rowsOf(table())
      try {
        for await (const doc of rows) yield doc as D
      } catch (error) {
        guard.refuse(error)
      }
    },
    checkpoint: async () => guard.run(() => (isApart() ? null : tableNow().checkpoint())),
    count: async () => {
      if (isApart()) return 0
      try {
        return await countOf(table())
      } catch (error) {
        return guard.refuse(error)
      }
    },
  }
}

export const byId = <T>(ids: readonly string[], read: (id: string) => T | null): Map<string, T> => {
  const found = new Map<string, T>()
  for (const id of ids) {
    const value = read(id)
    if (value !== null) found.set(id, value)
  }
  return found
}
