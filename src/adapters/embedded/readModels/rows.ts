import { setImmediate as turn } from 'node:timers/promises'
import type { Doc } from '../../../ports/readModels.ts'
import type { Table } from './table.ts'

const SLICE = 500

/**
 * Yields every document of one version in slices, so that other work continues. The version is not dropped during the
 * read.
 */
export async function* rowsOf(table: Table): AsyncGenerator<Doc> {
  const release = table.retain()
  try {
    for (let after = 0; ;) {
      const { docs, last } = table.slice(after, SLICE)
      if (docs.length === 0) return
      yield* docs
      after = last
      await turn()
    }
  } finally {
    release()
  }
}
