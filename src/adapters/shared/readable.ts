import type { Recorded } from '../../events/event.ts'
import { readable } from '../../events/upcast.ts'
import type { Batch, StreamBatch } from '../../ports/eventStore.ts'

const isUnreadable = ({ unreadable }: Recorded): boolean => unreadable !== undefined

/** Yields the batch up to the first fact that this build cannot read, then throws for that fact. */
export function* readableBatch(batch: Batch): Generator<Batch> {
  const found = batch.events.find(isUnreadable)
  if (!found) {
    yield batch
    return
  }
  const events = batch.events.slice(0, batch.events.indexOf(found))
  const last = events.at(-1)
  if (last) yield { events, cursor: last.cursor, caughtUp: false }
  readable(found)
}

/** The same for a part of one stream. */
export function* readableStreamBatch(batch: StreamBatch): Generator<StreamBatch> {
  const found = batch.events.find(isUnreadable)
  if (!found) {
    yield batch
    return
  }
  const events = batch.events.slice(0, batch.events.indexOf(found))
  if (events.length > 0) yield { events, caughtUp: false }
  readable(found)
}
