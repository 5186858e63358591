import { createHash } from 'node:crypto'
import { type Cursor, START } from '../events/event.ts'
import { type EventType, schemaOf } from '../events/index.ts'
import { versionOf } from '../events/upcast.ts'
import { slices } from '../loops/slices.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { CollectionSpec, ReadModels } from '../ports/readModels.ts'

/** Batches after which the position is stored. */
const STORED_AFTER = 256

const types = Object.keys(schemaOf).sort() as EventType[]
/** Differs for builds with different catalogues. A build with another one begins at the first fact again. */
const catalogue = createHash('sha256')
  .update(types.map((type) => `${type} ${versionOf(type)}`).join())
  .digest('hex')

/** The position in the log up to which each catalogue was checked. */
type WatchedDoc = { readonly position: Cursor }

const watched: CollectionSpec = { name: 'catalogue', version: 1, indexes: [] }

interface Deps {
  readonly readModels: ReadModels
  readonly store: Pick<EventStore, 'subscribe'>
  /** Called when it reads the log. */
  readonly onBegun?: () => void
}

/**
 * Reads the whole log once, then its end: the event store throws for a fact that this build cannot read. The projectors
 * read only known types. Without this watch, no error would report the log of a newer build. It shares the event loop until it
 * has read the log, and never pauses then: the newest facts are in memory, and a reader that falls behind would parse them
 * again.
 */
export const watchCatalogue = async (
  { readModels, store, onBegun = () => {} }: Deps,
  signal: AbortSignal,
): Promise<void> => {
  const collection = await readModels.writer<WatchedDoc>(watched)
  let batches = 0
  let hasCaughtUp = false
  const after = (await collection.get(catalogue))?.position ?? START
  onBegun()
  for await (const { cursor, caughtUp } of store.subscribe({ after, signal })) {
    const catchesUp: boolean = caughtUp && !hasCaughtUp
    hasCaughtUp ||= catchesUp
    if (catchesUp || ++batches % STORED_AFTER === 0)
      await collection.write([{ id: catalogue, doc: { position: cursor }, cursor }], START)
    const wait = hasCaughtUp ? null : slices.take()
    if (wait) await wait
  }
}
