import { clock } from '../clock.ts'
import { type Cursor, type Recorded, START } from '../events/event.ts'
import { countOf, cursorAt } from '../ports/counterCursors.ts'
import type { CollectionSpec, ReadModels, WritableCollection } from '../ports/readModels.ts'
import { nameOf, orderOf } from './projection.ts'

/** A fact that a read model does not contain, because its fold failed on it. */
export type SkippedFactDoc = {
  /** The read model with its version: another version is built from all facts. */
  readonly read_model: string
  readonly type: string
  readonly id: string
  readonly cursor: string
  readonly stream: string
  readonly revision: number
  /** The time at which the fact was stored. */
  readonly at: string
  readonly error: string
  readonly skipped_at: string
  readonly order: string
}

/** Kept with the read models and disposable like them: a new build finds the facts again. */
export const skippedFacts: CollectionSpec = {
  name: 'skipped_facts',
  version: 2,
  indexes: [
    { equal: [], sort: 'order' },
    { equal: ['read_model'], sort: 'order' },
  ],
}

const idOf = ({ read_model, cursor }: Pick<SkippedFactDoc, 'read_model' | 'cursor'>): string =>
  `${read_model} ${cursor}`

type Writable = WritableCollection<SkippedFactDoc>

const write = async (collection: Writable, doc: SkippedFactDoc, isRemoved = false): Promise<void> => {
  const id = idOf(doc)
  const before = (await collection.stored([id])).get(id)
  const cursor = cursorAt(countOf(before?.cursor) + 1)
  await collection.write([{ id, doc: isRemoved ? null : doc, cursor }], START)
}

const clearSkipped = async (
  collection: Writable,
  isOver: (doc: SkippedFactDoc) => boolean,
): Promise<void> => {
  for (const doc of await Array.fromAsync(collection.scan()))
    if (isOver(doc)) await write(collection, doc, true)
}

/** Removes the records of versions that were dropped. One that is created meanwhile is stored before its records. */
export const forgetSkipped = async (readModels: ReadModels): Promise<void> => {
  const collection = await readModels.writer<SkippedFactDoc>(skippedFacts)
  const recorded = await Array.fromAsync(collection.scan())
  if (recorded.length === 0) return
  const names = new Set((await readModels.versions()).map(nameOf))
  for (const doc of recorded) if (!names.has(doc.read_model)) await write(collection, doc, true)
}

/** The records of all read models. */
export const skippedIn = (readModels: ReadModels): Promise<SkippedFactDoc[]> =>
  Array.fromAsync(readModels.reader<SkippedFactDoc>(skippedFacts).scan())

/** The records of one read model. */
export const skippedOf = async (readModels: ReadModels, name: string): Promise<SkippedFactDoc[]> =>
  (await skippedIn(readModels)).filter(({ read_model }) => read_model === name)

/**
 * Records the facts that a read model lacks after it was filled apart from its projector. With `upTo`, it was filled up to
 * there, and what its projector has recorded after it remains.
 */
export const recordSkipped = async (
  readModels: ReadModels,
  name: string,
  docs: readonly SkippedFactDoc[],
  upTo?: Cursor,
): Promise<void> => {
  const collection = await readModels.writer<SkippedFactDoc>(skippedFacts)
  await clearSkipped(
    collection,
    ({ read_model, cursor }) => read_model === name && (upTo === undefined || cursor <= upTo),
  )
  for (const doc of docs) await write(collection, { ...doc, read_model: name })
}

/** The facts that one read model lacks. */
export class SkippedFacts {
  readonly #collection: Writable
  readonly #read_model: string

  constructor(collection: Writable, read_model: string) {
    this.#collection = collection
    this.#read_model = read_model
  }

  static async open(readModels: ReadModels, read_model: string): Promise<SkippedFacts> {
    return new SkippedFacts(await readModels.writer<SkippedFactDoc>(skippedFacts), read_model)
  }

  async count(): Promise<number> {
    const equal = { read_model: this.#read_model }
    return (await this.#collection.find({ equal, sort: 'order', limit: 1, offset: 0 })).total
  }

  /** Records a fact. A repetition records it again. */
  async add(recorded: Recorded, error: string): Promise<void> {
    const { event, id, cursor, stream, revision, at } = recorded
    await write(this.#collection, {
      read_model: this.#read_model,
      type: event.type,
      id,
      cursor,
      stream,
      revision,
      at,
      error,
      skipped_at: clock.iso(),
      order: orderOf(recorded),
    })
  }

  /** The read model is built from the first fact on. */
  async clear(): Promise<void> {
    await clearSkipped(this.#collection, ({ read_model }) => read_model === this.#read_model)
  }
}
