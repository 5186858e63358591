import { createHash } from 'node:crypto'
import { START } from '../events/event.ts'
import { type EventType, schemaOf } from '../events/index.ts'
import { versionOf } from '../events/upcast.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { CollectionSpec, ReadModels } from '../ports/readModels.ts'

/** Batches after which the position is stored. */
const STORED_AFTER = 256

const types = Object.keys(schemaOf).sort() as EventType[]
const digest = createHash('sha256').update(types.map((type) => `${type} ${versionOf(type)}`).join())

/**
 * Keeps only its position in the log. Its version is derived from the catalogue: a build with another catalogue begins
 * at the first fact again.
 */
const watched: CollectionSpec = {
  name: 'catalogue',
  version: Number.parseInt(digest.digest('hex').slice(0, 12), 16),
  indexes: [],
}

/**
 * Reads the whole log once, then its end: the event store throws for a fact that this build cannot read. The projectors
 * read only known types. Without this watch, no error would report the log of a newer build. It never pauses: the newest
 * facts are in memory, and a reader that falls behind would parse them again.
 */
export const watchCatalogue = async (
  { readModels, store }: { readModels: ReadModels; store: EventStore },
  signal: AbortSignal,
): Promise<void> => {
  const collection = await readModels.writer(watched)
  let batches = 0
  let isLive = false
  const after = (await collection.checkpoint()) ?? START
  for await (const { cursor, caughtUp } of store.subscribe({ after, signal })) {
    const goesLive: boolean = caughtUp && !isLive
    if (goesLive || ++batches % STORED_AFTER === 0) await collection.write([], cursor)
    if (goesLive) await readModels.goLive(watched)
    isLive ||= goesLive
  }
}
