import { type AnyBulkWriteOperation, type Collection as Documents, MongoBulkWriteError } from 'mongodb'
import type { Envelope } from './envelope.ts'
import { ask, isDuplicate } from './failures.ts'

const INSERTS_PER_COMMAND = 500
const UPDATES_PER_COMMAND = 100

/**
 * Stores each envelope unless what is there is as new. Those in `isNew` are thought not to be there yet and are
 * inserted, which is cheaper; a wrong guess costs time only.
 */
export const putAll = async (
  documents: Documents<Envelope>,
  envelopes: readonly Envelope[],
  isNew: ReadonlySet<string>,
): Promise<void> => {
  const inserts = envelopes
    .filter(({ _id }) => isNew.has(_id))
    .map((document) => ({ insertOne: { document } }))
  const beaten = await bulk(documents, inserts, INSERTS_PER_COMMAND)
  const others = [
    ...envelopes.filter(({ _id }) => !isNew.has(_id)),
    ...beaten.map(({ insertOne }) => insertOne.document),
  ]
  // Two upserts of a new id may collide: the one that lost finds the document there the next time.
  let updates = others.map(updateOf)
  while (updates.length > 0) updates = await bulk(documents, updates, UPDATES_PER_COMMAND)
}

/**
 * An `updateMany` of one document: FerretDB 1 keeps a connection of its own open for each `updateOne` of a command,
 * and jams at about a hundred.
 */
const updateOf = ({ _id, last }: Envelope) => ({
  updateMany: { filter: { _id }, update: { $max: { last } }, upsert: true },
})

/** Resolves with the operations that met a document with their id. */
const bulk = async <O extends AnyBulkWriteOperation<Envelope>>(
  documents: Documents<Envelope>,
  operations: readonly O[],
  perCommand: number,
): Promise<O[]> => {
  const refused: O[] = []
  for (let start = 0; start < operations.length; start += perCommand) {
    const some = operations.slice(start, start + perCommand)
    refused.push(...(await ask(() => duplicatesOf(documents, some))))
  }
  return refused
}

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
