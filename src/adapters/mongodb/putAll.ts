import { type AnyBulkWriteOperation, type Collection as Documents, MongoBulkWriteError } from 'mongodb'
import type { Envelope } from './envelope.ts'
import { ask, isDuplicate } from './failures.ts'
import type { Pace } from './pace.ts'

const INSERTS_PER_COMMAND = 500

/**
 * Stores each envelope unless what is there is as new. Those in `isNew` are thought not to be there yet and are
 * inserted, which is cheaper; a wrong guess costs time only.
 */
export const putAll = async (
  documents: Documents<Envelope>,
  envelopes: readonly Envelope[],
  { isNew, pace }: { isNew: ReadonlySet<string>; pace: Pace },
): Promise<void> => {
  const inserts = envelopes
    .filter(({ _id }) => isNew.has(_id))
    .map((document) => ({ insertOne: { document } }))
  const updates = envelopes.filter(({ _id }) => !isNew.has(_id)).map(updateOf)
  while (inserts.length > 0) {
    const some = inserts.splice(0, INSERTS_PER_COMMAND)
    const beaten = await ask(() => duplicatesOf(documents, some))
    updates.push(...beaten.map(({ insertOne }) => updateOf(insertOne.document)))
  }
  while (updates.length > 0) {
    const some = updates.splice(0, pace.size)
    // Two upserts of a new id may collide: the one that lost finds the document there the next time.
    updates.push(...(await pace.keep(some.length, () => ask(() => duplicatesOf(documents, some)))))
  }
}

/**
 * An `updateMany` of one document: FerretDB 1 keeps a connection of its own open for each `updateOne` of a command,
 * and jams at about a hundred.
 */
const updateOf = ({ _id, last }: Envelope) => ({
  updateMany: { filter: { _id }, update: { $max: { last } }, upsert: true },
})

/** Sends the operations as one command; resolves with those that met a document with their id. */
const duplicatesOf = async <O extends AnyBulkWriteOperation<Envelope>>(
  documents: Documents<Envelope>,
  operations: O[],
): Promise<O[]> => {
  try {
    await documents.bulkWrite(operations, { ordered: false })
    return []
  } catch (error) {
    if (!(error instanceof MongoBulkWriteError) || !isDuplicate(error)) throw error
    const errors = Array.isArray(error.writeErrors) ? error.writeErrors : [error.writeErrors]
    const other = errors.find(({ code }) => code !== error.code)
    if (other) throw error
    return errors.flatMap(({ index }) => operations[index] ?? [])
  }
}
