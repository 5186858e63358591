import { MongoClient } from 'mongodb'
import { openMongoReadModels } from '../../src/adapters/mongodb/index.ts'
import { newId } from '../../src/ids.ts'
import type { CollectionSpec, Query, ReadModels } from '../../src/ports/readModels.ts'

/** The same server, another database. */
const inDatabase = (url: string, database: string): string =>
  url.replace(/^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/${database}`)

/** Read models in a database of their own. */
export interface Context {
  /** A database that no other opening uses. */
  url: string
  client: MongoClient
  readModels: ReadModels
  /** Opens the same database again, like another process. */
  openAnother(url?: string): Promise<ReadModels>
  /** Closes everything and drops the database. */
  close(): Promise<void>
}

export const isFerretDB1 = async (client: MongoClient): Promise<boolean> =>
  'ferretdbVersion' in (await client.db().command({ buildInfo: 1 }))

export const opened = async (server: string): Promise<Context> => {
  const url = inDatabase(server, `svc_test_${newId().replaceAll('-', '')}`)
  const client = new MongoClient(url)
  const others: ReadModels[] = []
  const openAnother = async (other = url) => {
    const readModels = await openMongoReadModels({ url: other })
    others.push(readModels)
    return readModels
  }
  const readModels = await openAnother()
  return {
    url,
    client,
    readModels,
    openAnother,
    close: async () => {
      for (const readModels of others) await readModels.close()
      await client.db().dropDatabase()
      await client.close()
    },
  }
}

export const spec: CollectionSpec = {
  name: 'runs',
  version: 1,
  indexes: [
    { equal: ['env'], sort: 'at', counted: true },
    { equal: ['env'], sort: 'due', sparse: true },
  ],
}
export const spec2 = { ...spec, version: 2 }
export const inEnv: Query = { equal: { env: 'x' }, sort: 'at', limit: 10, offset: 0 }
/** Resolves with the error; null if there is none. */
export const refused = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  )

export const collectionsIn = async (client: MongoClient): Promise<string[]> =>
  (await client.db().listCollections().toArray()).map(({ name }) => name)

/** Says that no node reads a version. */
export const unread = (): Promise<boolean> => Promise.resolve(true)
