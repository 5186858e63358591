import { ReadConcern } from 'mongodb'
import { AppError } from '../../errors.ts'
import type { Cursor } from '../../events/event.ts'
import type {
  Collection,
  CollectionSpec,
  Doc,
  FoldedLog,
  ReadModels,
  Stored,
  Version,
  WritableCollection,
} from '../../ports/readModels.ts'
import { isIndexed, refuseUndeclared, sameIndexes } from '../shared/declared.ts'
import { scanFor } from '../shared/scanFor.ts'
import { parseAddress } from './address.ts'
import { collectionName, versionsIn } from './collections.ts'
import { Connection } from './connection.ts'
import { createIndexes } from './createIndexes.ts'
import { dropLeft, dropVersion } from './dropping.ts'
import { ask, openingFailure } from './failures.ts'
import { serverOf, type Server } from './server.ts'
import { Presence } from './presence.ts'
import { Registry, type VersionRow } from './registry.ts'
import { isReplicated } from './replication.ts'
import { completeExchange, replaceVersion } from './replacing.ts'
import { StoredVersion } from './storedVersion.ts'

interface Options {
  /** A URL for `parseAddress`. */
  readonly url: string
}

/**
 * Opens read models in a MongoDB database (4.4 or newer, also a single server) for any number of processes.
 * Rejects with `bad_request` if the settings cannot work, and with `unavailable` if the server does not answer.
 */
export const openMongoReadModels = async ({ url }: Options): Promise<ReadModels> => {
  const { newClient, database, place } = parseAddress(url)
  const connection = new Connection(newClient, database)
  try {
    const hello = await ask(() => connection.db.command({ hello: 1 }))
    // A write that most members do not have yet may be rolled back, so a projector must not see it as stored.
    if (isReplicated(hello)) connection.configure({ readConcern: new ReadConcern('majority') })
    await ask(() => new Registry(connection).probe())
    return new MongoReadModels(connection, await serverOf(connection))
  } catch (error) {
    await connection.close()
    throw openingFailure(error, place)
  }
}

/** How a collection reads a version: with or without a proof that it exists. */
interface Source {
  readonly read: <T>(work: (version: StoredVersion) => Promise<T>) => Promise<T>
  readonly checkpoint: () => Promise<Cursor | null>
  readonly docs: () => AsyncIterable<Doc>
}

class MongoReadModels implements ReadModels {
  readonly #connection: Connection
  readonly #server: Server
  readonly #registry: Registry
  readonly #presence: Presence
  readonly #closing = new AbortController()
  /** `made` of the versions whose indexes exist: a projector that begins again after an outage need not ask. */
  readonly #indexed = new Map<string, string>()

  constructor(connection: Connection, server: Server) {
    this.#connection = connection
    this.#server = server
    this.#registry = new Registry(server)
    this.#presence = new Presence(this.#registry)
  }

  reader<D extends Doc>(spec: CollectionSpec): Collection<D> {
    const versionOf = this.#versionsBy(spec)
    return this.#collection<D>(spec, {
      read: (work) => this.#presence.read(spec, (row) => work(versionOf(row))),
      checkpoint: () => this.#presence.readState(spec, () => this.#registry.checkpoint(spec)),
      docs: () => this.#presence.scan(spec, (row) => versionOf(row).docs()),
    })
  }

  async writer<D extends Doc>(spec: CollectionSpec): Promise<WritableCollection<D>> {
    this.#refuseClosed()
    const made = await this.#make(spec)
    if (!sameIndexes(made.declared, spec.indexes)) {
      throw new Error(
        `Expected collection ${collectionName(spec)} with the indexes that it was created with: raise its version`,
      )
    }
    const open = () => this.#refuseClosed()
    const stored = sameIndexes(made.spec.indexes, spec.indexes) ? spec : made.spec
    const version = new StoredVersion(this.#server, this.#registry, stored, made.claimed) // it remembers what this writer has read
    return {
      ...this.#collection<D>(spec, {
        read: (work) => work(version),
        checkpoint: () => version.checkpoint(),
        docs: () => version.docs(),
      }),
      stored: async (ids) => this.#open(() => version.stored(ids) as Promise<Map<string, Stored<D>>>),
      entries: async function* () {
        open()
        for await (const [id, stored] of version.entries()) yield [id, stored as Stored<D>] as const
      },
      write: async (writes, checkpoint, options) =>
        this.#open(() => version.write(writes, checkpoint, options)),
      forgetRemovals: async (upTo) => this.#open(() => version.forgetRemovals(upTo)),
      wantsChanges: stored.indexes.some(({ counted }) => counted),
      isRemote: true,
    }
  }

  async versions(): Promise<readonly Version[]> {
    await this.#open(() => this.#presence.look())
    return this.#open(() => versionsIn(this.#server.db))
  }

  async drop(version: Version, isUnread: () => Promise<boolean>): Promise<void> {
    const { signal } = this.#closing
    await this.#open(() =>
      dropVersion(version, { db: this.#server.db, registry: this.#registry, signal }, isUnread),
    )
  }

  async replace(version: Version, by: Version, isUnread?: () => Promise<boolean>): Promise<boolean> {
    const { signal } = this.#closing
    return this.#open(() =>
      replaceVersion(version, by, { db: this.#server.db, registry: this.#registry, signal }, isUnread),
    )
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
    this.#presence.close()
    await this.#connection.close()
  }

  #collection<D extends Doc>(spec: CollectionSpec, { read, checkpoint, docs }: Source): Collection<D> {
    const on = async <T>(work: (version: StoredVersion) => Promise<T>): Promise<T> =>
      this.#open(() => read(work))
    const open = () => this.#refuseClosed()
    return {
      get: (id) => on((version) => version.get(id)) as Promise<D | null>,
      getMany: (ids) => on((version) => version.getMany(ids)) as Promise<Map<string, D>>,
      find: (async (query) => {
        refuseUndeclared(spec, query)
        return on((version) =>
          version.spec === spec || isIndexed(version.spec, query)
            ? version.find(query)
            : scanFor(query, version.entries()),
        )
      }) as Collection<D>['find'],
      scan: async function* () {
        open()
        for await (const doc of docs()) yield doc as D
      },
      checkpoint: async () => this.#open(checkpoint),
      count: () => on((version) => version.count()),
    }
  }

  /** Returns a function that returns the version with the indexes of a row, which change when it is replaced. */
  #versionsBy(spec: CollectionSpec): (row: VersionRow | null) => StoredVersion {
    const declared = JSON.stringify(spec.indexes)
    const stored = (indexes: string) => {
      const other = { ...spec, indexes: JSON.parse(indexes) as CollectionSpec['indexes'] }
      const version = new StoredVersion(this.#server, this.#registry, indexes === declared ? spec : other)
      return { indexes, version }
    }
    let latest = stored(declared)
    return (row) => {
      const indexes = row?.indexes ?? declared
      if (latest.indexes !== indexes) latest = stored(indexes)
      return latest.version
    }
  }

  /** Creates the version of this spec if necessary. */
  async #make(spec: CollectionSpec): ReturnType<Registry['register']> {
    const deps = { db: this.#server.db, registry: this.#registry }
    const name = collectionName(spec)
    if ((await this.#registry.row(spec)) === null) await dropLeft(spec, deps)
    const registered = await this.#registry.register(spec)
    if (registered.isExchanging) await completeExchange(spec, deps)
    const { made } = registered
    if (made === undefined || this.#indexed.get(name) !== made) {
      await createIndexes(this.#server, registered.spec)
      if (made !== undefined) this.#indexed.set(name, made)
    }
    return registered
  }

  #open<T>(work: () => Promise<T>): Promise<T> {
    this.#refuseClosed()
    return work()
  }

  #refuseClosed(): void {
    if (this.#closing.signal.aborted) throw new AppError('unavailable', 'The read models are closed')
  }
}
