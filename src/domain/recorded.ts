import { AppError } from '../errors.ts'
import { type Recorded, START } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { Handled } from './commandHandler.ts'

/** Returns a fact of a command as it is stored in the log, without reading it back. */
export const recordedOf = (
  { events, ids, firstRevision, cursor }: Handled,
  type: EventType,
  { stream, at, metadata }: Pick<Recorded, 'stream' | 'at' | 'metadata'>,
): Recorded => {
  const index = events.findIndex((event) => event.type === type)
  const [event, id] = [events[index], ids[index]]
  if (!event || id === undefined)
    throw new AppError('internal_server_error', `Expected a ${type} to be stored`)
  return { id, stream, revision: firstRevision + index, cursor: cursor ?? START, at, event, metadata }
}
