import { isAppError } from '../../errors.ts'
import type { Metadata, NewEvent } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { versionOf } from '../../events/upcast.ts'
import { derivedId } from '../../ids.ts'
import type { EventStore } from '../../ports/eventStore.ts'

/** The facts of one append: about 150 KB, below the limit of EventStoreDB. */
const AT_ONCE = 500

/** The beginnings of streams whose facts expire by the plan of the organization. */
const EXPIRING = [streamOf.stream(''), streamOf.runLog('')]

/** Whether facts of the stream expire by the plan of its organization. */
export const expires = (stream: string): boolean => EXPIRING.some((beginning) => stream.startsWith(beginning))

/** A stream without its first `count` facts, which have expired, and the metadata of the first that is left. */
export interface CutStream {
  readonly stream: string
  readonly count: number
  readonly metadata: Metadata
}

/**
 * Appends a fact without content for each fact of a stream that has expired. No event store can begin a stream at a later revision, and
 * the later facts must keep theirs: other facts and the ids of server-sent events contain them. A repetition continues. Resolves
 * also if the stream has other facts there: the append of the following facts finds that.
 */
export const appendExpired = async (
  store: Pick<EventStore, 'append'>,
  { stream, count, metadata: { env_id, correlation_id, first_at, imported_at } }: CutStream,
): Promise<void> => {
  const metadata: Metadata = {
    ...(env_id !== undefined && { env_id }),
    correlation_id,
    ...(first_at !== undefined && { first_at }),
    ...(imported_at !== undefined && { imported_at }),
    v: versionOf('FactExpired'),
  }
  for (let from = 0; from < count;) {
    const events = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, n): NewEvent => ({
      id: derivedId('expired', stream, from + n),
      event: { type: 'FactExpired' },
      metadata,
    }))
    try {
      await store.append(stream, events, from === 0 ? 'none' : from - 1)
      from += events.length
    } catch (error) {
      const reached = isAppError(error, 'wrong_revision') ? error.data['actual'] : undefined
      if (typeof reached !== 'number' || reached < from) throw error
      from = reached + 1
    }
  }
}
