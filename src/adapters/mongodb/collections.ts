import type { Db } from 'mongodb'
import type { Version } from '../../ports/readModels.ts'
import { ask, isAbsent } from './failures.ts'

export const collectionName = ({ name, version }: Version): string => `${name}__v${version}`

/** Follows the name of a version in that of the collection with its counts, which is no version. */
export const COUNTS = '__counts'

/** The versions that have a collection. */
export const versionsIn = async (db: Db): Promise<Version[]> => {
  const listed = await ask(() => db.listCollections({}, { nameOnly: true }).toArray())
  return listed.flatMap(({ name: collection }) => {
    const [, name, version] = /^(.+)__v(\d+)$/.exec(collection) ?? []
    return name === undefined ? [] : { name, version: Number(version) }
  })
}

/** Drops a collection; one that an earlier attempt has dropped is no error. */
export const dropCollection = async (db: Db, name: string): Promise<void> => {
  await ask(() =>
    db
      .collection(name)
      .drop()
      .catch((error: unknown) => {
        if (!isAbsent(error)) throw error
      }),
  )
}
