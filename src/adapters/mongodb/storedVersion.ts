import type { Collection as Documents, Db, Filter } from 'mongodb'
import { BoundedMap } from '../../boundedMap.ts'
import type { Cursor } from '../../events/event.ts'
import type { CollectionSpec, Doc, Found, Query, Stored, Write } from '../../ports/readModels.ts'
import { docOf, type Envelope, enveloperOf, storedOf } from './envelope.ts'
import { ask } from './failures.ts'
import { BatchSize } from './batchSize.ts'
import { collectionName } from './collections.ts'
import { commandOf, present } from './queries.ts'
import { putAll } from './putAll.ts'
import type { Registry } from './registry.ts'

const ROWS_PER_COMMAND = 500

/** Documents whose existence is remembered: more than a projector caches. */
const KNOWN_IDS = 4096

/** One version of a collection, with the indexes that it was created with. */
export class StoredVersion {
  readonly spec: CollectionSpec
  readonly #db: Db
  readonly #registry: Registry
  readonly #documents: Documents<Envelope>
  readonly #envelopeOf
  readonly #readBatch = new BatchSize()
  readonly #updateBatch = new BatchSize()
  readonly #isThere = new BoundedMap<string, boolean>(KNOWN_IDS)

  constructor(db: Db, registry: Registry, spec: CollectionSpec) {
    this.spec = spec
    this.#db = db
    this.#registry = registry
    this.#documents = db.collection<Envelope>(collectionName(spec))
    this.#envelopeOf = enveloperOf(spec)
  }

  async get(id: string): Promise<Doc | null> {
    const envelope = await ask(() => this.#documents.findOne({ _id: id }))
    return envelope && docOf(envelope)
  }

  async getMany(ids: readonly string[]): Promise<Map<string, Doc>> {
    const docs = new Map<string, Doc>()
    for (const [id, { doc }] of await this.stored(ids)) if (doc) docs.set(id, doc)
    return docs
  }

  async stored(ids: readonly string[]): Promise<Map<string, Stored>> {
    const found = new Map<string, Stored>()
    const left = [...new Set(ids)]
    while (left.length > 0) {
      const some = left.splice(0, this.#readBatch.ids)
      const find = () => this.#documents.find({ _id: { $in: some } }).toArray()
      for (const envelope of await this.#readBatch.measure(some.length, () => ask(find)))
        found.set(envelope._id, storedOf(envelope))
    }
    for (const id of ids) this.#isThere.set(id, found.has(id))
    return found
  }

  /**
   * The total is counted along the index, unless this is the last page. Stored counters would drift: a crash
   * between the write of a document and its counter cannot be undone without transactions.
   */
  async find(query: Query): Promise<Found<Doc>> {
    const { filter, sort, hint } = commandOf(this.spec, query)
    const { limit, offset } = query
    const page = this.#documents.find(filter, { sort, hint, skip: offset, limit, batchSize: limit + 1 })
    const items =
      limit === 0 ? [] : (await ask(() => page.toArray())).map((envelope) => docOf(envelope) ?? {})
    const isLastPage = items.length < limit && (items.length > 0 || offset === 0)
    if (isLastPage || query.totals === false) return { items, total: offset + items.length }
    return { items, total: await this.#count(filter, hint) }
  }

  /** The command `count` runs along the index alone; `countDocuments` would be an aggregation. */
  async #count(query: Filter<Envelope>, hint: string): Promise<number> {
    const { n } = await ask(() => this.#db.command({ count: collectionName(this.spec), query, hint }))
    return Number(n)
  }

  async *docs(): AsyncGenerator<Doc> {
    const cursor = this.#documents.find(present, { batchSize: ROWS_PER_COMMAND })
    try {
      for (let next = await ask(() => cursor.next()); next; next = await ask(() => cursor.next())) {
        for (const envelope of [next, ...cursor.readBufferedDocuments()]) yield docOf(envelope) ?? {}
      }
    } finally {
      await cursor.close().catch(() => {}) // otherwise the server closes it after a timeout
    }
  }

  checkpoint(): Promise<Cursor | null> {
    return this.#registry.checkpoint(this.spec)
  }

  /** The checkpoint follows the documents: after a crash between the two, the repeated writes change nothing (P1). */
  async write(writes: readonly Write[], checkpoint: Cursor): Promise<void> {
    const envelopes = newestOf(writes).map(this.#envelopeOf)
    const ids = envelopes.map(({ _id }) => _id)
    const isNew = new Set(ids.filter((id) => !this.#isThere.get(id)))
    await putAll(this.#documents, envelopes, { isNew, updateBatch: this.#updateBatch })
    for (const id of ids) this.#isThere.set(id, true)
    await this.#registry.advance(this.spec, checkpoint)
  }
}

/** Keeps only the newest write of each document. */
const newestOf = (writes: readonly Write[]): Write[] => {
  const newest = new Map<string, Write>()
  for (const write of writes) {
    const other = newest.get(write.id)
    if (!other || write.cursor > other.cursor) newest.set(write.id, write)
  }
  return [...newest.values()]
}
