import { setImmediate as turn } from 'node:timers/promises'
import type { Doc } from '../../../ports/readModels.ts'
import type { Table } from './table.ts'

const SLICE = 500

/**
 * Yields every document of one version in slices, so that other work continues. The version is retained during the
 * read, even if another one goes live.
 */
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
