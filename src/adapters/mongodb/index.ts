import { type Db, type MongoClient, ReadConcern } from 'mongodb'
import { AppError } from '../../errors.ts'
import type { Cursor } from '../../events/event.ts'
import type {
  Collection,
  CollectionSpec,
  Doc,
  FoldedLog,
  ReadModels,
  Stored,
  WritableCollection,
} from '../../ports/readModels.ts'
import { refuseUndeclared } from '../shared/declared.ts'
import { parseAddress } from './address.ts'
import { createIndexes } from './createIndexes.ts'
import { dropOlder } from './dropping.ts'
import { ask, openingFailure } from './failures.ts'
import { Live } from './live.ts'
import { collectionName, Registry } from './registry.ts'
import { Version } from './version.ts'

interface Options {
  /** A URL for `parseAddress`. */
  readonly url: string
  /** Receives failures that will be retried. */
  readonly onWarn?: (message: string) => void
}

/**
 * Opens read models in a MongoDB database (4.4 or newer, also a single server) for any number of processes.
 * Rejects with `bad_request` if the settings cannot work, and with `unavailable` if the server does not answer.
 */
export const openMongoReadModels = async ({ url, onWarn = () => {} }: Options): Promise<ReadModels> => {
  const { client, database, place } = parseAddress(url)
  try {
    const { setName } = await ask(() => client.db(database).command({ hello: 1 }))
    // A write that most members do not have yet may be rolled back, so a projector must not see it as stored.
    const db = client.db(database, setName === undefined ? {} : { readConcern: new ReadConcern('majority') })
    await ask(() => new Registry(db).probe())
    return new MongoReadModels(client, db, onWarn)
  } catch (error) {
    await client.close()
    throw openingFailure(error, place)
  }
}

/** The source of a collection's reads: one version, or the version that is live. */
interface Source {
  readonly read: <T>(work: (version: Version) => Promise<T>) => Promise<T>
  readonly rows: () => AsyncIterable<{ readonly doc: Doc }>
}

class MongoReadModels implements ReadModels {
  readonly #client: MongoClient
  readonly #db: Db
  readonly #onWarn: (message: string) => void
  readonly #registry: Registry
  readonly #live: Live
  readonly #versions = new Map<string, Version>()
  readonly #closing = new AbortController()
  readonly #dropping = new Set<Promise<void>>()

  constructor(client: MongoClient, db: Db, onWarn: (message: string) => void) {
    this.#client = client
    this.#db = db
    this.#onWarn = onWarn
    this.#registry = new Registry(db)
    this.#live = new Live(this.#registry)
  }

  reader<D extends Doc>(spec: CollectionSpec): Collection<D> {
    return this.#collection<D>(spec, {
      read: (work) => this.#live.read(spec, (live) => work(this.#version(live))),
      rows: () => this.#live.scan(spec, (live) => this.#version(live).rows()),
    })
  }

  async writer<D extends Doc>(spec: CollectionSpec): Promise<WritableCollection<D>> {
    this.#refuseClosed()
    const made = await this.#make(spec)
    if (JSON.stringify(made.indexes) !== JSON.stringify(spec.indexes)) {
      throw new Error(
        `Expected collection ${collectionName(spec)} with the indexes that it was created with: raise its version`,
      )
    }
    const version = new Version(this.#db, this.#registry, spec) // not shared: it remembers what this writer has read
    return {
      ...this.#collection<D>(spec, { read: (work) => work(version), rows: () => version.rows() }),
      stored: async (ids) => this.#open(() => version.stored(ids) as Promise<Map<string, Stored<D>>>),
      write: async (writes, checkpoint) => this.#open(() => version.write(writes, checkpoint)),
    }
  }

  async goLive(spec: CollectionSpec): Promise<void> {
    this.#refuseClosed()
    const live = await this.#registry.live(spec.name)
    if (!live || live.version < spec.version) await this.#registry.setLive(await this.#make(spec))
    this.#live.forget(spec.name)
    const { signal } = this.#closing
    const dropping = dropOlder(spec.name, {
      db: this.#db,
      registry: this.#registry,
      signal,
      onWarn: this.#onWarn,
    })
    this.#dropping.add(dropping)
    void dropping.then(() => this.#dropping.delete(dropping))
  }

  source(): Promise<FoldedLog> {
    return this.#open(() => this.#registry.source())
  }

  assign(log_id: string): Promise<void> {
    return this.#open(() => this.#registry.assign(log_id))
  }

  countAfter(cursor: Cursor): Promise<number> {
    return this.#open(() => this.#registry.countAfter(cursor))
  }

  async restart(log_id: string): Promise<void> {
    await this.#open(() => this.#registry.dropAll())
    await this.#registry.assign(log_id)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#dropping)
    await this.#client.close()
  }

  #collection<D extends Doc>(spec: CollectionSpec, { read, rows }: Source): Collection<D> {
    const on = async <T>(work: (version: Version) => Promise<T>): Promise<T> => this.#open(() => read(work))
    const open = () => this.#refuseClosed()
    return {
      get: (id) => on((version) => version.get(id)) as Promise<D | null>,
      getMany: (ids) => on((version) => version.getMany(ids)) as Promise<Map<string, D>>,
      find: (async (query) => {
        refuseUndeclared(spec, query)
        return on((version) => version.find(query))
      }) as Collection<D>['find'],
      scan: async function* () {
        open()
        for await (const { doc } of rows()) yield doc as D
      },
      checkpoint: () => on((version) => version.checkpoint()),
    }
  }

  /** Creates the version of this spec if necessary. Resolves with the indexes that it was first created with. */
  async #make(spec: CollectionSpec): Promise<CollectionSpec> {
    const made = await this.#registry.register(spec)
    await createIndexes(this.#db, made)
    return made
  }

  #version(spec: CollectionSpec): Version {
    const name = collectionName(spec)
    const known = this.#versions.get(name) ?? new Version(this.#db, this.#registry, spec)
    this.#versions.set(name, known)
    return known
  }

  #open<T>(work: () => Promise<T>): Promise<T> {
    this.#refuseClosed()
    return work()
  }

  #refuseClosed(): void {
    if (this.#closing.signal.aborted) throw new AppError('unavailable', 'The read models are closed')
  }
}
