import type { MongoClient } from 'mongodb'

/** Copies the documents and checkpoints of a database. Returns a function that restores them. */
export const dumped = async (client: MongoClient): Promise<() => Promise<void>> => {
  const db = client.db()
  const names = (await db.listCollections().toArray()).map(({ name }) => name)
  const copies = await Promise.all(
    names.map(async (name) => [name, await db.collection(name).find().toArray()] as const),
  )
  return async () => {
    for (const [name, documents] of copies) {
      await db.collection(name).deleteMany({})
      if (documents.length > 0) await db.collection(name).insertMany(documents)
    }
  }
}
