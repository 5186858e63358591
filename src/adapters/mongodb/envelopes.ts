import type { Collection as Documents } from 'mongodb'
import { BoundedMap } from '../../boundedMap.ts'
import type { Stored } from '../../ports/readModels.ts'
import { BatchSize } from './batchSize.ts'
import { type Envelope, storedOf } from './envelope.ts'
import type { Lookup } from './server.ts'
import { putAll } from './putAll.ts'

/** Documents whose existence is remembered: more than a projector caches. */
const KNOWN_IDS = 4096

/** The last writes of documents, by id. */
export class Envelopes {
  readonly #documents: () => Documents<Envelope>
  readonly #lookup: Lookup
  readonly #readBatch = new BatchSize()
  readonly #updateBatch = new BatchSize()
  readonly #isThere = new BoundedMap<string, boolean>(KNOWN_IDS)

  constructor(documents: () => Documents<Envelope>, lookup: Lookup) {
    this.#documents = documents
    this.#lookup = lookup
  }

  async stored(ids: readonly string[]): Promise<Map<string, Stored>> {
    const found = new Map<string, Stored>()
    const left = [...new Set(ids)]
    while (left.length > 0) {
      const some = left.splice(0, this.#readBatch.ids)
      const find = () => this.#lookup(this.#documents(), some)
      for (const envelope of await this.#readBatch.measure(some.length, find))
        found.set(envelope._id, storedOf(envelope))
    }
    for (const id of ids) this.#isThere.set(id, found.has(id))
    return found
  }

  /** Stores each envelope unless a newer one is stored. `refuseLate` may throw before each command. */
  async put(envelopes: readonly Envelope[], refuseLate = () => {}): Promise<void> {
    const ids = envelopes.map(({ _id }) => _id)
    const isNew = new Set(ids.filter((id) => !this.#isThere.get(id)))
    await putAll(this.#documents(), envelopes, {
      isNew,
      updateBatch: this.#updateBatch,
      lookup: this.#lookup,
      refuseLate,
    })
    for (const id of ids) this.#isThere.set(id, true)
  }
}
