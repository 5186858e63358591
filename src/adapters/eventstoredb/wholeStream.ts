import { AppError } from '../../errors.ts'
import type { Recorded } from '../../events/event.ts'
import { PAGE } from './portion.ts'
import type { Reader } from './reader.ts'

/** The reads without a new event after which a stream counts as expired, or the server as unavailable. */
const EMPTY_READS = 3

/**
 * Yields up to `limit` events of a stream from a revision, and ends early only at its end: a read that the server ended
 * too early is continued. Rejects with `unavailable` if the server continues to end reads too early.
 */
export async function* wholeStream(
  reader: Pick<Reader, 'stream' | 'last' | 'expires' | 'isDeleted'>,
  stream: string,
  { from, limit }: { from: number; limit: number },
): AsyncGenerator<Recorded> {
  let next = from
  let left = limit
  let fitting = PAGE
  for (let empty = 0; left > 0;) {
    const asked = Math.min(left, fitting)
    const page = await reader.stream(stream, next, asked)
    yield* page.events
    if (page.isMissing) return
    left -= page.events.length
    empty = page.next === next ? empty + 1 : 0
    next = page.next
    fitting = page.fitting
    if (page.isFull || page.events.length === asked) continue
    const last = await reader.last(stream)
    if (last !== null && last < next) return
    if (empty < EMPTY_READS) continue
    if (last === null && (await hasExpired(reader, stream))) return
    throw new AppError('unavailable', `The event store ended the reads of ${stream} before its last event`)
  }
}

/** Whether a stream has had events, and has none left. One read proves nothing, because it may have ended too early. */
export const hasExpired = async (
  reader: Pick<Reader, 'last' | 'expires' | 'isDeleted'>,
  stream: string,
): Promise<boolean> => {
  for (let reads = 0; reads < EMPTY_READS; reads++) {
    const last = await reader.last(stream)
    if (last === -1) return reader.isDeleted(stream)
    if (last !== null) return false
  }
  return reader.expires(stream)
}

/**
 * Returns the revision of the last event of a stream; -1 if there never was one, null if none is left or the read ended too
 * early. A deleted stream reads as a missing one.
 */
export const lastLeft = async (
  reader: Pick<Reader, 'last' | 'isDeleted'>,
  stream: string,
): Promise<number | null> => {
  const last = await reader.last(stream)
  return last === -1 && (await reader.isDeleted(stream)) ? null : last
}
