import type { Db } from 'mongodb'
import type { CollectionSpec } from '../../ports/readModels.ts'
import { collectionName } from './collections.ts'
import { ask, isAbsent, isThere } from './failures.ts'
import { indexesOf } from './queries.ts'
import type { Server } from './server.ts'

/** Creates the collection and the missing indexes of its spec. */
export const createIndexes = async ({ db, usesIndexes }: Server, spec: CollectionSpec): Promise<void> => {
  const name = collectionName(spec)
  if (!usesIndexes) return ask(() => createCollection(db, name))
  const documents = db.collection(name)
  const existing = await ask(() =>
    documents.indexes().catch((error: unknown) => {
      if (isAbsent(error)) return []
      throw error
    }),
  )
  const names = new Set(existing.map((index) => index.name))
  const missing = indexesOf(spec).filter((index) => !names.has(index.name))
  if (missing.length > 0) await ask(() => documents.createIndexes(missing))
}

const createCollection = async (db: Db, name: string): Promise<void> => {
  await db.createCollection(name).catch((error: unknown) => {
    if (!isThere(error)) throw error
  })
}
