import { setImmediate as turn } from 'node:timers/promises'
import type { Doc, Stored } from '../../../ports/readModels.ts'
import type { Table } from './table.ts'

const SLICE = 500
/** Rows that are counted between other work. */
const COUNTED = 10_000

/** Yields every document of one version. */
export const rowsOf = (table: Table): AsyncGenerator<Doc> =>
  inSlices(table, (after) => {
    const { docs, last } = table.slice(after, SLICE)
    return { found: docs, last }
  })

/** Yields every id of one version with its last write. */
export const entriesOf = (table: Table): AsyncGenerator<[id: string, stored: Stored]> =>
  inSlices(table, (after) => {
    const { entries, last } = table.entries(after, SLICE)
    return { found: entries, last }
  })

export const countOf = async (table: Table): Promise<number> => {
  let total = 0
  for await (const count of inSlices(table, (after) => {
    const { count, last } = table.countSlice(after, COUNTED)
    return { found: last === null ? [] : [count], last: last ?? after }
  }))
    total += count
  return total
}

/** Reads in slices, so that other work continues. The version is not dropped during the read. */
async function* inSlices<T>(
  table: Table,
  read: (after: number) => { readonly found: readonly T[]; readonly last: number },
): AsyncGenerator<T> {
  const release = table.retain()
  try {
    for (let after = 0; ;) {
      const { found, last } = read(after)
      if (found.length === 0) return
      yield* found
      after = last
      await turn()
    }
  } finally {
    release()
  }
}
