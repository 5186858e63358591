import { type Collection as Documents, MongoBulkWriteError } from 'mongodb'
import type { Envelope } from './envelope.ts'
import { ask, isDuplicate } from './failures.ts'
import type { Lookup } from './server.ts'
import type { BatchSize } from './batchSize.ts'

const INSERTS_PER_COMMAND = 500

interface Ways {
  readonly isNew: ReadonlySet<string>
  readonly updateBatch: BatchSize
  readonly lookup: Lookup
  /** Called before each command: this process may have been stopped since the last one. */
  readonly refuseLate: () => void
}

/**
 * Stores each envelope unless a newer one is stored. Envelopes in `isNew` are probably not stored yet and are
 * inserted, which is cheaper; a wrong guess only costs time.
 */
export const putAll = async (
  documents: Documents<Envelope>,
  envelopes: readonly Envelope[],
  { isNew, updateBatch, lookup, refuseLate }: Ways,
): Promise<void> => {
  const inserts = envelopes.filter(({ _id }) => isNew.has(_id))
  const updates = envelopes.filter(({ _id }) => !isNew.has(_id))
  while (inserts.length + updates.length > 0) {
    const fresh = inserts.splice(0, INSERTS_PER_COMMAND)
    refuseLate()
    if (fresh.length > 0) updates.push(...(await ask(() => insert(documents, fresh))))
    const some = updates.splice(0, updateBatch.ids)
    if (some.length > 0) {
      refuseLate()
      const matched = await updateBatch.measure(some.length, () => ask(() => update(documents, some)))
      if (matched < some.length) inserts.push(...(await missing(documents, some, lookup)))
    }
  }
}

/**
 * Updates the stored envelopes and resolves with their number. Three choices are for FerretDB 1. The filter has
 * only the id, because any other filter decodes the whole collection. `updateMany` is used because each
 * `updateOne` occupies a connection and about a hundred block it. There are no upserts, because a conflict in one
 * skips the rest of the command.
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
  lookup: Lookup,
): Promise<Envelope[]> => {
  const found = await lookup(
    documents,
    envelopes.map(({ _id }) => _id),
  )
  const ids = new Set(found.map(({ _id }) => _id))
  return envelopes.filter(({ _id }) => !ids.has(_id))
}

/** Inserts envelopes and resolves with those that were already stored. */
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
