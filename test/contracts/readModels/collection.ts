import { newId } from '../../../src/ids.ts'
import type { CollectionSpec, Doc, Query, ReadModels, Scalar, Write } from '../../../src/ports/readModels.ts'

export interface OpenReadModels {
  readonly readModels: ReadModels
  /** The steps with which the engine executes a query; absent if the engine does not report them. */
  readonly planOf?: (spec: CollectionSpec, query: Query) => Promise<readonly string[]>
  close(): Promise<void>
}

export const cursorOf = (position: number): string => String(position).padStart(16, '0')

/** A collection without other users, and a cursor that only increases. */
export const aCollection = () => {
  const spec: CollectionSpec = {
    name: `runs_${newId().replaceAll('-', '')}`,
    version: 1,
    indexes: [
      { equal: [], sort: 'at', counted: true },
      { equal: ['env'], sort: 'at', counted: true },
      { equal: ['env', 'status'], sort: 'at', counted: true },
      { equal: ['env'], sort: 'path' },
      { equal: ['flag'], sort: 'size' },
    ],
  }
  let position = 0
  const next = () => cursorOf(++position)
  const put = (id: string, doc: Doc | null, cursor = next()): Write => ({ id, doc, cursor })
  return { spec, next, put }
}

export const byTime: Query = { equal: {}, sort: 'at', limit: 20, offset: 0 }
export const inEnv = (env: Scalar, more: Partial<Query> = {}): Query => ({
  ...byTime,
  equal: { env },
  ...more,
})

export const idsIn = async (found: Promise<{ items: readonly Doc[] }>) =>
  (await found).items.map(({ id }) => id)

/** The order of the documents does not matter where the port promises none. */
export const sorted = (values: Iterable<unknown>) => [...values].sort()
