import { MongoClient } from 'mongodb'
import { openMongoReadModels } from '../../src/adapters/mongodb/index.ts'
import { newId } from '../../src/ids.ts'
import { readModelsContract } from '../contracts/readModels.ts'
import { engineUrl } from '../support/engines.ts'

const url = engineUrl('mongodb')

if (url) {
  readModelsContract('MongoDB', async () => {
    const database = `svc_test_${newId().replaceAll('-', '')}`
    const readModels = await openMongoReadModels({ url: inDatabase(url, database) })
    return {
      readModels,
      close: async () => {
        await readModels.close()
        await dropDatabase(url, database)
      },
    }
  })
}

/** The same server, another database. */
const inDatabase = (original: string, database: string): string =>
  original.replace(/^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/${database}`)

const dropDatabase = async (original: string, database: string): Promise<void> => {
  const client = new MongoClient(original)
  try {
    await client.db(database).dropDatabase()
  } finally {
    await client.close()
  }
}
