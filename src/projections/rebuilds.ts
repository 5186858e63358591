import { clock } from '../clock.ts'
import { type Cursor, START } from '../events/event.ts'
import { countOf, cursorAt } from '../ports/counterCursors.ts'
import type { CollectionSpec, ReadModels, WritableCollection } from '../ports/readModels.ts'
import type { Difference } from './compareDocuments.ts'

/**
 * The rebuild of one read model that was asked for last. `building`: new documents are built beside those that are
 * served. `comparing`: both are compared. `failed`: the former documents are still served.
 */
export type RebuildDoc = {
  /** The read model with its version. */
  readonly name: string
  readonly state: 'waiting' | 'building' | 'comparing' | 'done' | 'failed'
  /** Whether the new documents are compared with the former ones. */
  readonly verify: boolean
  readonly requested_at: string
  readonly ended_at: string | null
  /** The position in the log up to which the new documents are built. */
  readonly position: Cursor
  /** The number of documents that differed; null if they were not compared. */
  readonly differences: number | null
  readonly first_differences: readonly Difference[]
  readonly error: string | null
}

/** Stored with the read models, so that the node that projects finds a request of any node, also after a crash. */
export const rebuilds: CollectionSpec = { name: 'rebuilds', version: 1, indexes: [] }

export const isOver = ({ state }: RebuildDoc): boolean => state === 'done' || state === 'failed'

/** The requested rebuilds, one for each read model. */
export class Rebuilds {
  readonly #collection: WritableCollection<RebuildDoc>

  private constructor(collection: WritableCollection<RebuildDoc>) {
    this.#collection = collection
  }

  static async open(readModels: ReadModels): Promise<Rebuilds> {
    return new Rebuilds(await readModels.writer<RebuildDoc>(rebuilds))
  }

  all(): Promise<RebuildDoc[]> {
    return Array.fromAsync(this.#collection.scan())
  }

  /** Requests a rebuild. One that has not ended continues, and is verified if either request asks for it. */
  async request(name: string, { verify }: { readonly verify: boolean }): Promise<void> {
    const known = await this.#collection.get(name)
    if (known && !isOver(known)) {
      if (verify && !known.verify) await this.#write({ ...known, verify })
      return
    }
    await this.#write({
      name,
      state: 'waiting',
      verify,
      requested_at: clock.iso(),
      ended_at: null,
      position: START,
      differences: null,
      first_differences: [],
      error: null,
    })
  }

  /** Changes that are reported at the same time are stored one after another. */
  async record(name: string): Promise<RebuildRecord | null> {
    const doc = await this.#collection.get(name)
    return doc && new RebuildRecord(doc, (next) => this.#write(next))
  }

  /** Another node may write at the same time: the later count wins. */
  async #write(doc: RebuildDoc): Promise<void> {
    const before = (await this.#collection.stored([doc.name])).get(doc.name)
    const cursor = cursorAt(countOf(before?.cursor) + 1)
    await this.#collection.write([{ id: doc.name, doc, cursor }], START)
  }
}

/** The progress of one rebuild. */
export class RebuildRecord {
  readonly #write: (doc: RebuildDoc) => Promise<void>
  #doc: RebuildDoc
  #written: Promise<void> = Promise.resolve()

  constructor(doc: RebuildDoc, write: (doc: RebuildDoc) => Promise<void>) {
    this.#doc = doc
    this.#write = write
  }

  get doc(): RebuildDoc {
    return this.#doc
  }

  update(change: Partial<RebuildDoc>): Promise<void> {
    this.#doc = { ...this.#doc, ...change }
    if (isOver(this.#doc)) this.#doc = { ...this.#doc, ended_at: clock.iso() }
    const doc = this.#doc
    this.#written = this.#written.catch(() => {}).then(() => this.#write(doc))
    return this.#written
  }
}
