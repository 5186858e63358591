import type { Collection as Documents, Filter } from 'mongodb'
import { type Cursor, START } from '../../events/event.ts'
import { slices } from '../../loops/slices.ts'
import type {
  Change,
  CollectionSpec,
  Doc,
  Found,
  Query,
  Stored,
  Write,
  WriteOptions,
} from '../../ports/readModels.ts'
import { changesOf, Counts } from './counts.ts'
import { docOf, type Envelope, storedOf, enveloperOf } from './envelope.ts'
import { Envelopes } from './envelopes.ts'
import { ask, DEADLINE_MS } from './failures.ts'
import { boundsOf, isBelow, isOpen } from '../shared/bounds.ts'
import { collectionName } from './collections.ts'
import type { Server } from './server.ts'
import { commandOf, present, removedUpTo } from './queries.ts'
import type { Registry } from './registry.ts'

const ROWS_PER_COMMAND = 500
/** Removals that are forgotten in one command. */
const FORGOTTEN = 500
/** The server ends a query whose caller has given up: otherwise repeated ones would keep it busy with replies for nobody. */
const LIMIT = { maxTimeMS: DEADLINE_MS } as const

/** One version of a collection, with the indexes that it was created with. */
export class StoredVersion {
  readonly spec: CollectionSpec
  readonly #server: Server
  readonly #registry: Registry
  readonly #envelopeOf
  readonly #envelopes: Envelopes
  readonly #counts: Counts
  /** The newest checkpoint that this writer has stored or found. The next write continues only if the server still has it. */
  #advanced: Cursor | null = null

  readonly #claimed: string | undefined

  /** `claimed`: of its row, for a writer. */
  constructor(server: Server, registry: Registry, spec: CollectionSpec, claimed?: string) {
    this.spec = spec
    this.#claimed = claimed
    this.#server = server
    this.#registry = registry
    this.#envelopeOf = enveloperOf(spec)
    this.#envelopes = new Envelopes(() => this.#documents, server.lookup)
    this.#counts = new Counts(server, spec)
  }

  get #documents(): Documents<Envelope> {
    return this.#server.db.collection(collectionName(this.spec))
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

  stored(ids: readonly string[]): Promise<Map<string, Stored>> {
    return this.#envelopes.stored(ids)
  }

  /** The total is that of the stored counts as far as possible, and is counted along the index for the rest. */
  async find(query: Query): Promise<Found<Doc>> {
    const { filter, sort, hint } = commandOf(this.spec, query)
    const { limit, offset } = query
    const options = { ...LIMIT, sort, hint, skip: offset, limit, batchSize: limit + 1 }
    const page = this.#documents.find(filter, options)
    const items =
      limit === 0 ? [] : (await ask(() => page.toArray())).map((envelope) => docOf(envelope) ?? {})
    const seen = offset + items.length
    const isLastPage = items.length < limit && (items.length > 0 || offset === 0)
    if (isLastPage || query.totals === false) return { items, total: seen }
    const total = await this.#total(query)
    return { items, total: items.length > 0 ? Math.max(total, seen) : total } // counts change before documents
  }

  async #total(query: Query): Promise<number> {
    const { from } = query
    const kept = boundsOf(query).length === 0 ? await this.#counts.of(query) : undefined
    if (kept !== undefined) return kept
    if (isBelow(query)) {
      const ends = [query.before, query.from ?? ''].map((end) => this.#before(query, end))
      const [upTo, skipped] = await Promise.all(ends)
      if (upTo !== undefined && skipped !== undefined) return Math.max(0, upTo - skipped)
    }
    const passed =
      typeof from === 'string' && isOpen(query) ? await this.#counts.after(query, from) : undefined
    const { filter, hint } = commandOf(this.spec, passed ? { ...query, before: passed.before } : query)
    return (passed?.count ?? 0) + (await this.#walk(filter, hint))
  }

  /** The number of documents before a text; undefined if the index has no counts of steps. */
  async #before(query: Query, before: string): Promise<number | undefined> {
    const preceding = await this.#counts.before(query, before)
    if (preceding === undefined) return undefined
    const { filter, hint } = commandOf(this.spec, { ...query, from: preceding.step, before })
    return preceding.count + (await this.#walk(filter, hint))
  }

  /** The command `count` runs along the index alone; `countDocuments` would be an aggregation. */
  async #walk(query: Filter<Envelope>, hint: string): Promise<number> {
    const count = { count: collectionName(this.spec), query, hint, ...LIMIT }
    const { n } = await ask(() => this.#server.db.command(count))
    return Number(n)
  }

  async *docs(): AsyncGenerator<Doc> {
    for await (const envelope of this.#all(present)) yield docOf(envelope) ?? {}
  }

  async *entries(): AsyncGenerator<[id: string, stored: Stored]> {
    for await (const envelope of this.#all({})) yield [envelope._id, storedOf(envelope)]
  }

  async *#all(filter: Filter<Envelope>): AsyncGenerator<Envelope> {
    const cursor = this.#documents.find(filter, { batchSize: ROWS_PER_COMMAND })
    try {
      for (let next = await ask(() => cursor.next()); next; next = await ask(() => cursor.next())) {
        yield next
        yield* cursor.readBufferedDocuments()
      }
    } finally {
      await cursor.close().catch(() => {}) // otherwise the server closes it after a timeout
    }
  }

  count(): Promise<number> {
    return ask(() => this.#documents.countDocuments(present))
  }

  async checkpoint(): Promise<Cursor | null> {
    const found = await this.#registry.checkpoint(this.spec)
    if (found !== null) this.#reached(found)
    return found
  }

  #reached(checkpoint: Cursor): void {
    if (checkpoint > (this.#advanced ?? START)) this.#advanced = checkpoint
  }

  /**
   * The counts and summaries precede the documents, and the checkpoint follows them: after a crash in between, the repeated
   * writes change nothing (P1).
   */
  async write(
    writes: readonly Write[],
    checkpoint: Cursor,
    { changes, summaries = [], refuseLate }: WriteOptions = {},
  ): Promise<void> {
    await Promise.all([this.#count(writes, changes, refuseLate), this.#put(summaries, refuseLate)])
    await this.#put(newestOf(writes), refuseLate)
    const expected = { known: this.#advanced, claimed: this.#claimed }
    await this.#registry.advance(this.spec, checkpoint, expected)
    this.#reached(checkpoint)
  }

  /** A document that was written again since is kept. */
  async forgetRemovals(upTo: Cursor): Promise<number> {
    const { filter, hint } = removedUpTo(this.spec, upTo)
    const wait = slices.take()
    if (wait) await wait
    const some = this.#documents.find(filter, {
      ...LIMIT,
      projection: { _id: 1 },
      limit: FORGOTTEN,
      batchSize: FORGOTTEN + 1,
      ...(hint !== undefined && { hint }),
    })
    const ids = (await ask(() => some.toArray())).map(({ _id }) => _id)
    if (ids.length === 0) return 0
    await ask(() => this.#documents.deleteMany({ _id: { $in: ids }, ...filter }))
    return ids.length
  }

  async #put(writes: readonly Write[], refuseLate: WriteOptions['refuseLate']): Promise<void> {
    const envelopes: Envelope[] = []
    await slices.each(writes, (write) => envelopes.push(this.#envelopeOf(write)))
    await this.#envelopes.put(envelopes, refuseLate)
  }

  async #count(
    writes: readonly Write[],
    changes: readonly Change[] | undefined,
    refuseLate: WriteOptions['refuseLate'],
  ): Promise<void> {
    if (this.#counts.isEmpty) return
    const known = changes ?? changesOf(writes, await this.stored(writes.map(({ id }) => id)))
    await this.#counts.add(known, refuseLate)
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
