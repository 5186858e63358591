import type { Collection as Documents, Db } from 'mongodb'
import { type Cursor, START } from '../../events/event.ts'
import { AppError } from '../../errors.ts'
import type { CollectionSpec, FoldedLog } from '../../ports/readModels.ts'
import { ask, isAbsent, isDuplicate } from './failures.ts'

/** One row for each created version: `runs__v1`. */
interface VersionRow {
  readonly _id: string
  /** JSON text. */
  readonly indexes: string
  readonly checkpoint: Cursor | null
}

/** One row for each collection with a live version: `runs`. */
interface PointerRow {
  readonly _id: string
  /** `version` is the first field, because `$max` compares by it. */
  readonly live: { readonly version: number; readonly indexes: string }
}

/** The only row of its collection. */
interface IdentityRow {
  readonly _id: 'log'
  readonly log_id: string
}

export const collectionName = ({ name, version }: Pick<CollectionSpec, 'name' | 'version'>): string =>
  `${name}__v${version}`

/** The stored facts about the log and each collection: its versions, their indexes and checkpoints, and the live version. */
export class Registry {
  readonly #db: Db
  readonly #versions: Documents<VersionRow>
  readonly #pointers: Documents<PointerRow>
  readonly #identity: Documents<IdentityRow>

  constructor(db: Db) {
    this.#db = db
    this.#identity = db.collection<IdentityRow>('identity')
    this.#versions = db.collection<VersionRow>('versions')
    this.#pointers = db.collection<PointerRow>('pointers')
  }

  /** Rejects if the server does not answer or does not permit writes. */
  async probe(): Promise<void> {
    await this.#versions.deleteOne({ _id: '' })
    await this.#pointers.findOne({ _id: '' })
  }

  /** Registers the version. Resolves with the indexes that it was first created with. */
  async register(spec: CollectionSpec): Promise<CollectionSpec> {
    const _id = collectionName(spec)
    const made = { indexes: JSON.stringify(spec.indexes), checkpoint: null }
    const row = await ask(async () => {
      await this.#versions
        .updateOne({ _id }, { $setOnInsert: made }, { upsert: true })
        .catch((error: unknown) => {
          if (!isDuplicate(error)) throw error // another node registered it first
        })
      return this.#versions.findOne({ _id })
    })
    return row ? specOf(spec.name, spec.version, row.indexes) : spec
  }

  /** Whether the version exists. */
  async knows(spec: CollectionSpec): Promise<boolean> {
    return (await ask(() => this.#versions.findOne({ _id: collectionName(spec) }))) !== null
  }

  async checkpoint(spec: CollectionSpec): Promise<Cursor | null> {
    const row = await ask(() => this.#versions.findOne({ _id: collectionName(spec) }))
    return row?.checkpoint ?? null
  }

  /** Moves the checkpoint forward, never back. Throws `unavailable` if the version was dropped: its projector restarts. */
  async advance(spec: CollectionSpec, checkpoint: Cursor): Promise<void> {
    const _id = collectionName(spec)
    const { matchedCount } = await ask(() => this.#versions.updateOne({ _id }, { $max: { checkpoint } }))
    if (matchedCount === 0) throw new AppError('unavailable', `The read model ${_id} was dropped`)
  }

  async forget(spec: Pick<CollectionSpec, 'name' | 'version'>): Promise<void> {
    await ask(() => this.#versions.deleteOne({ _id: collectionName(spec) }))
  }

  async source(): Promise<FoldedLog> {
    const identity = await ask(() => this.#identity.findOne({ _id: 'log' }))
    let newest: Cursor | null = null
    for (const { checkpoint } of await this.#folded())
      if (checkpoint !== null && (newest === null || checkpoint > newest)) newest = checkpoint
    return { log_id: identity?.log_id ?? null, checkpoint: newest }
  }

  async assign(log_id: string): Promise<void> {
    const set = () => this.#identity.updateOne({ _id: 'log' }, { $set: { log_id } }, { upsert: true })
    await ask(() =>
      set().catch((error: unknown) => (isDuplicate(error) ? set() : Promise.reject(error as Error))),
    )
  }

  /** Drops the collections of all versions, also those that are not live. */
  async dropAll(): Promise<void> {
    await ask(() => this.#pointers.deleteMany({}))
    for (const { _id } of await ask(() => this.#versions.find().toArray())) {
      await ask(() =>
        this.#db
          .collection(_id)
          .drop()
          .catch((error: unknown) => {
            if (!isAbsent(error)) throw error // an earlier attempt has dropped it
          }),
      )
      await ask(() => this.#versions.deleteOne({ _id }))
    }
  }

  async countAfter(cursor: Cursor): Promise<number> {
    let count = 0
    for (const { _id } of await this.#folded()) {
      const query = { 'last.cursor': { $gt: cursor }, 'last.gone': false }
      count += Number((await ask(() => this.#db.command({ count: _id, query })))['n'])
    }
    return count
  }

  /** The versions that were folded from the log; the others have no checkpoint. */
  async #folded(): Promise<VersionRow[]> {
    return ask(() => this.#versions.find({ checkpoint: { $gt: START } }).toArray())
  }

  /** Returns the live version, or null if none is live. */
  async live(name: string): Promise<CollectionSpec | null> {
    const row = await ask(() => this.#pointers.findOne({ _id: name }))
    return row && specOf(name, row.live.version, row.live.indexes)
  }

  /** Makes a version live unless a newer one is live. */
  async setLive({ name, version, indexes }: CollectionSpec): Promise<void> {
    const live = { version, indexes: JSON.stringify(indexes) }
    const set = () => this.#pointers.updateOne({ _id: name }, { $max: { live } }, { upsert: true })
    await ask(() =>
      set().catch((error: unknown) => (isDuplicate(error) ? set() : Promise.reject(error as Error))),
    )
  }
}

const specOf = (name: string, version: number, indexes: string): CollectionSpec => ({
  name,
  version,
  indexes: JSON.parse(indexes) as CollectionSpec['indexes'],
})
