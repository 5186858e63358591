import { type Collection as Documents, MongoBulkWriteError } from 'mongodb'
import type { Envelope } from './envelope.ts'
import { ask, isDuplicate } from './failures.ts'
import type { Pace } from './pace.ts'

const INSERTS_PER_COMMAND = 500

/**
 * Stores each envelope unless what is there is newer. Those in `isNew` are thought not to be there yet and are
 * inserted, which is cheaper; a wrong guess costs time only.
 */
export const putAll = async (
  documents: Documents<Envelope>,
  envelopes: readonly Envelope[],
  { isNew, pace }: { isNew: ReadonlySet<string>; pace: Pace },
): Promise<void> => {
  const inserts = envelopes.filter(({ _id }) => isNew.has(_id))
  const updates = envelopes.filter(({ _id }) => !isNew.has(_id))
  while (inserts.length + updates.length > 0) {
    const fresh = inserts.splice(0, INSERTS_PER_COMMAND)
    if (fresh.length > 0) updates.push(...(await ask(() => insert(documents, fresh))))
    const some = updates.splice(0, pace.size)
    if (some.length > 0) {
      const matched = await pace.keep(some.length, () => ask(() => update(documents, some)))
      if (matched < some.length) inserts.push(...(await ask(() => missing(documents, some))))
    }
  }
}

/**
 * Each that is there, by the id alone: for any other filter FerretDB 1 decodes the whole collection. As `updateMany`
 * of one document, because it keeps a connection open for each `updateOne` of a command, and jams at about a hundred.
 * Not as upserts: at one that meets another's it leaves the rest of the command undone. Resolves with the number of
 * those that are there.
 */
const update = async (documents: Documents<Envelope>, envelopes: readonly Envelope[]): Promise<number> => {
  const operations = envelopes.map(({ _id, last }) => ({
    updateMany: { filter: { _id }, update: { $max: { last } } },
  }))
  return (await documents.bulkWrite(operations, { ordered: false })).matchedCount
}

const missing = async (
  documents: Documents<Envelope>,
  envelopes: readonly Envelope[],
): Promise<Envelope[]> => {
  const ids = await idsThere(
    documents,
    envelopes.map(({ _id }) => _id),
  )
  return envelopes.filter(({ _id }) => !ids.has(_id))
}

const idsThere = async (documents: Documents<Envelope>, ids: readonly string[]): Promise<Set<string>> => {
  const found = documents.find({ _id: { $in: [...ids] } }, { projection: { _id: 1 } })
  return new Set((await found.toArray()).map(({ _id }) => _id))
}

/** Resolves with those that are there already. */
const insert = async (documents: Documents<Envelope>, envelopes: Envelope[]): Promise<Envelope[]> => {
  try {
    await documents.insertMany(envelopes, { ordered: false })
    return []
  } catch (error) {
    if (!(error instanceof MongoBulkWriteError) || !isDuplicate(error)) throw error
    const errors = Array.isArray(error.writeErrors) ? error.writeErrors : [error.writeErrors]
    const isOnlyThat = errors.every(({ code }) => code === error.code) && !error.result.getWriteConcernError()
    if (!isOnlyThat) throw error
    return errors.flatMap(({ index }) => envelopes[index] ?? [])
  }
}
