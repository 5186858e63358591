import { MongoClient } from 'mongodb'
import { openMongoReadModels } from '../../src/adapters/mongodb/index.ts'
import { newId } from '../../src/ids.ts'
import type { CollectionSpec, Doc, Query, ReadModels } from '../../src/ports/readModels.ts'

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

/** FerretDB 1 loses one of two updates of a document at the same time, `$max` too. MongoDB does not. */
const oneWriteAtATime = (readModels: ReadModels): ReadModels => {
  let last: Promise<unknown> = Promise.resolve()
  const writer: ReadModels['writer'] = async <D extends Doc>(collection: CollectionSpec) => {
    const open = await readModels.writer<D>(collection)
    const write: typeof open.write = (...args) => {
      const done = last.then(() => open.write(...args))
      last = done.catch(() => {})
      return done
    }
    return { ...open, write }
  }
  return new Proxy(readModels, {
    get: (target, name) => {
      if (name === 'writer') return writer
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

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
    readModels: (await isFerretDB1(client)) ? oneWriteAtATime(readModels) : readModels,
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
