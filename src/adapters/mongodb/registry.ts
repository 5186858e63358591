import type { Collection as Documents, Db } from 'mongodb'
import type { Cursor } from '../../events/event.ts'
import { AppError } from '../../errors.ts'
import type { CollectionSpec } from '../../ports/readModels.ts'
import { ask, isDuplicate } from './failures.ts'

/** Of each version that was made: `runs__v1`. */
interface VersionRow {
  readonly _id: string
  /** As JSON. */
  readonly indexes: string
  readonly checkpoint: Cursor | null
}

/** Of each collection of which a version went live: `runs`. */
interface PointerRow {
  readonly _id: string
  /** `version` comes first: `$max` compares by it. */
  readonly live: { readonly version: number; readonly indexes: string }
}

export const collectionName = ({ name, version }: Pick<CollectionSpec, 'name' | 'version'>): string =>
  `${name}__v${version}`

/** What the database knows of its collections: made with which indexes, how far, which version is live. */
export class Registry {
  readonly #versions: Documents<VersionRow>
  readonly #pointers: Documents<PointerRow>

  constructor(db: Db) {
    this.#versions = db.collection<VersionRow>('versions')
    this.#pointers = db.collection<PointerRow>('pointers')
  }

  /** Fails when the server does not answer or does not let us write. */
  async probe(): Promise<void> {
    await this.#versions.deleteOne({ _id: '' })
    await this.#pointers.findOne({ _id: '' })
  }

  /** Makes the version known; resolves with the indexes it was first made with. */
  async register(spec: CollectionSpec): Promise<CollectionSpec> {
    const _id = collectionName(spec)
    const made = { indexes: JSON.stringify(spec.indexes), checkpoint: null }
    const row = await ask(async () => {
      await this.#versions
        .updateOne({ _id }, { $setOnInsert: made }, { upsert: true })
        .catch((error: unknown) => {
          if (!isDuplicate(error)) throw error // another node was faster
        })
      return this.#versions.findOne({ _id })
    })
    return row ? specOf(spec.name, spec.version, row.indexes) : spec
  }

  /** Whether the version was made, and not dropped since. */
  async knows(spec: CollectionSpec): Promise<boolean> {
    return (await ask(() => this.#versions.findOne({ _id: collectionName(spec) }))) !== null
  }

  async checkpoint(spec: CollectionSpec): Promise<Cursor | null> {
    const row = await ask(() => this.#versions.findOne({ _id: collectionName(spec) }))
    return row?.checkpoint ?? null
  }

  /** Never back. `unavailable` when the version is not there any more: its projector begins anew. */
  async advance(spec: CollectionSpec, checkpoint: Cursor): Promise<void> {
    const _id = collectionName(spec)
    const { matchedCount } = await ask(() => this.#versions.updateOne({ _id }, { $max: { checkpoint } }))
    if (matchedCount === 0) throw new AppError('unavailable', `The read model ${_id} was dropped`)
  }

  async forget(spec: Pick<CollectionSpec, 'name' | 'version'>): Promise<void> {
    await ask(() => this.#versions.deleteOne({ _id: collectionName(spec) }))
  }

  /** The live version; null while none is. */
  async live(name: string): Promise<CollectionSpec | null> {
    const row = await ask(() => this.#pointers.findOne({ _id: name }))
    return row && specOf(name, row.live.version, row.live.indexes)
  }

  /** Unless a newer one is live already. */
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
