import { isDeepStrictEqual } from 'node:util'
import { clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { type Cursor, START } from '../events/event.ts'
import { countOf, cursorAt } from '../ports/counterCursors.ts'
import type { CollectionSpec, ReadModels, Stored, WritableCollection } from '../ports/readModels.ts'
import type { Difference } from './compareDocuments.ts'
import type { SkippedFactDoc } from './skippedFacts.ts'

/**
 * The rebuild of one read model that was asked for last. `building`: new documents are built beside those that are
 * served. `comparing`: both are compared. `replacing`: the new ones take their place. `failed`: the former documents are
 * still served.
 */
export type RebuildDoc = {
  /** The read model with its version. */
  readonly name: string
  readonly state: 'waiting' | 'building' | 'comparing' | 'replacing' | 'done' | 'failed'
  /** Whether the new documents are compared with the former ones. */
  readonly verify: boolean
  /** The version whose documents are served until the rebuild is done, after an upgrade; null for other rebuilds. */
  readonly from_version: number | null
  readonly requested_at: string
  readonly ended_at: string | null
  /** The position in the log up to which the new documents are built. */
  readonly position: Cursor
  /** The number of documents that differed; null if they were not compared. */
  readonly differences: number | null
  readonly first_differences: readonly Difference[]
  readonly error: string | null
  /** An operator has given it up. The node that works on it, or would begin it, ends it. */
  readonly cancelled?: boolean
  /** While the new documents take their place: the facts that they lack, because a crash leaves no other record. */
  readonly lacking?: readonly SkippedFactDoc[]
}

/** Stored with the read models, so that the node that projects finds a request of any node, also after a crash. */
export const rebuilds: CollectionSpec = { name: 'rebuilds', version: 1, indexes: [] }

export const isOver = ({ state }: Pick<RebuildDoc, 'state'>): boolean =>
  state === 'done' || state === 'failed'

const cancelling = (name: string): AppError =>
  new AppError('conflict', `The rebuild of ${name} is being cancelled: repeat the request when it has ended`)

interface Request {
  readonly verify: boolean
  readonly from_version?: number | null
}

type Change = Partial<RebuildDoc> | ((known: RebuildDoc) => Partial<RebuildDoc>)

/** The requested rebuilds, one for each read model. */
export class Rebuilds {
  readonly #collection: WritableCollection<RebuildDoc>
  #changes: Promise<void> = Promise.resolve()

  private constructor(collection: WritableCollection<RebuildDoc>) {
    this.#collection = collection
  }

  static async open(readModels: ReadModels): Promise<Rebuilds> {
    return new Rebuilds(await readModels.writer<RebuildDoc>(rebuilds))
  }

  all(): Promise<RebuildDoc[]> {
    return Array.fromAsync(this.#collection.scan())
  }

  get(name: string): Promise<RebuildDoc | null> {
    return this.#collection.get(name)
  }

  /**
   * Requests a rebuild. One that has not ended continues, and is verified if either request asks for it. The rebuild after
   * an upgrade remains one until it is done.
   */
  async request(name: string, { verify, from_version = null }: Request): Promise<void> {
    await this.#update(name, (known) => {
      if (known?.cancelled && !isOver(known)) throw cancelling(name)
      if (known && !isOver(known)) return verify && !known.verify ? { ...known, verify } : null
      return {
        name,
        state: 'waiting',
        verify,
        from_version: from_version ?? (known?.state === 'failed' ? known.from_version : null),
        requested_at: clock.iso(),
        ended_at: null,
        position: START,
        differences: null,
        first_differences: [],
        error: null,
      }
    })
  }

  /** Gives up a rebuild that has not ended. Resolves with whether there is one. */
  async cancel(name: string): Promise<boolean> {
    let isFound = false
    await this.#update(name, (known) => {
      isFound = known !== null && !isOver(known)
      return known && isFound && !known.cancelled ? { ...known, cancelled: true } : null
    })
    return isFound
  }

  /**
   * Changes a stored rebuild, also by a function of what is stored. Changes that are reported at the same time are stored
   * one after another.
   */
  change(name: string, change: Change): Promise<void> {
    let requested_at: string | undefined
    const changed = this.#changes
      .catch(() => {})
      .then(() =>
        this.#update(name, (known) => {
          if (!known) return null
          requested_at ??= known.requested_at
          if (known.requested_at !== requested_at) return null // it has ended meanwhile, and another one was requested
          const doc = { ...known, ...(typeof change === 'function' ? change(known) : change) }
          return isOver(doc) ? { ...doc, ended_at: clock.iso() } : doc
        }),
      )
    this.#changes = changed
    return changed
  }

  /**
   * Other nodes may write at the same time: this one tries again until nobody has written after it. A write that another one
   * has overtaken was perhaps skipped, and a repetition changes nothing.
   */
  async #update(name: string, decide: (known: RebuildDoc | null) => RebuildDoc | null): Promise<void> {
    for (;;) {
      const before = await this.#stored(name)
      const doc = decide(before?.doc ?? null)
      if (!doc) return
      const cursor = cursorAt(countOf(before?.cursor) + 1)
      await this.#collection.write([{ id: name, doc, cursor }], START)
      const after = await this.#stored(name)
      if (after?.cursor === cursor && isDeepStrictEqual(after.doc, doc)) return
    }
  }

  async #stored(name: string): Promise<Stored<RebuildDoc> | undefined> {
    return (await this.#collection.stored([name])).get(name)
  }
}
