import type { Db } from 'mongodb'
import type { CollectionSpec } from '../../ports/readModels.ts'
import { collectionName } from './collections.ts'
import { ask, isAbsent, isNotImplemented } from './failures.ts'
import { indexesOf } from './queries.ts'

/**
 * Creates the collection and the missing indexes of its spec. Existing indexes are skipped, because FerretDB 1
 * breaks the connection when an index is created again.
 */
export const createIndexes = async (db: Db, spec: CollectionSpec): Promise<void> => {
  const documents = db.collection(collectionName(spec))
  const existing = await ask(() =>
    documents.indexes().catch((error: unknown) => {
      if (isAbsent(error)) return []
      throw error
    }),
  )
  const names = new Set(existing.map(({ name }) => name))
  const missing = indexesOf(spec).filter(({ name }) => !names.has(name))
  if (missing.length === 0) return
  await ask(() =>
    documents.createIndexes(missing).catch((error: unknown) => {
      if (!isNotImplemented(error)) throw error
      return documents.createIndexes(missing.map(notPartial)) // FerretDB 1 has no partial indexes
    }),
  )
}

const notPartial = ({ key, name }: ReturnType<typeof indexesOf>[number]) => ({ key, name })
