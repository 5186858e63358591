import type { Collection as Documents, Db } from 'mongodb'
import type { Envelope } from './envelope.ts'
import { ask } from './failures.ts'

/** Returns the envelopes with these ids that are stored. */
export type Lookup = (documents: Documents<Envelope>, ids: readonly string[]) => Promise<Envelope[]>

/** Where commands are sent. */
export interface Database {
  /** Not kept by anyone, because its connections may be replaced. */
  readonly db: Db
}

export interface Server extends Database {
  readonly lookup: Lookup
  /** Whether queries use indexes. Otherwise none are created, because they make writes slow. */
  readonly usesIndexes: boolean
}

/** The connections that one lookup may occupy. */
const CONNECTIONS = 8

/** FerretDB 1 decodes the whole collection for every filter except that of one id. */
export const serverOf = async (database: Database): Promise<Server> => {
  const build = await ask(() => database.db.command({ buildInfo: 1 }))
  const isFerretDB1 = 'ferretdbVersion' in build // FerretDB 2 does not have this field
  return {
    get db() {
      return database.db
    },
    lookup: isFerretDB1 ? oneByOne : together,
    usesIndexes: !isFerretDB1,
  }
}

const together: Lookup = (documents, ids) =>
  ask(() => documents.find({ _id: ids.length === 1 ? (ids[0] ?? '') : { $in: [...ids] } }).toArray())

const oneByOne: Lookup = async (documents, ids) => {
  const found: Envelope[] = []
  for (let at = 0; at < ids.length; at += CONNECTIONS) {
    const some = ids.slice(at, at + CONNECTIONS)
    const envelopes = await Promise.all(some.map((_id) => ask(() => documents.findOne({ _id }))))
    found.push(...envelopes.filter((envelope) => envelope !== null))
  }
  return found
}
