import type { StreamEvent } from '../../../client/index.ts'

/** The newest events that the page keeps. */
const KEPT = 5000
/** The newest characters of each text that the page keeps. */
const KEPT_TEXT = 200_000

/** What a page has received of a stream. */
export interface Tail {
  /** The oldest first. */
  readonly events: readonly StreamEvent[]
  /** All events that were received, also those that are no longer kept. */
  readonly count: number
  /** The texts that functions emitted, joined, by the type of the data. */
  readonly texts: ReadonlyMap<string, string>
}

export const emptyTail: Tail = { events: [], count: 0, texts: new Map() }

/** The tail after further events, in their order. */
export const continued = (tail: Tail, events: readonly StreamEvent[]): Tail => {
  const texts = new Map(tail.texts)
  for (const { event, data } of events)
    if (event === 'stream:data' && typeof data.payload === 'string')
      texts.set(data.data_type, ((texts.get(data.data_type) ?? '') + data.payload).slice(-KEPT_TEXT))
  return {
    events: [...tail.events, ...events].slice(-KEPT),
    count: tail.count + events.length,
    texts,
  }
}
