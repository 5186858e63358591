import type { StreamEvent } from '../../../client/index.ts'
import { beginningOf } from '../../parts/beginningOf.ts'

/** The newest events that the page keeps. */
const KEPT = 5000
/** The characters of their data as JSON that the page keeps; of one event, there can be 8 million. */
const KEPT_JSON = 32 << 20
/** The newest characters of each text that the page keeps. */
const KEPT_TEXT = 200_000
/** The characters of a summary. */
const SUMMARY = 200

/** An event with what each row of a list needs of it: its data can be large, and is converted once. */
export interface KeptEvent {
  readonly event: StreamEvent
  readonly summary: string
  /** Characters of its data as JSON. */
  readonly size: number
}

/** What a page has received of a stream. */
export interface Tail {
  /** The oldest first. */
  readonly events: readonly KeptEvent[]
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
    events: newest([...tail.events, ...events.map(keptOf)]),
    count: tail.count + events.length,
    texts,
  }
}

/** The newest event is always kept. */
const newest = (events: readonly KeptEvent[]): readonly KeptEvent[] => {
  let first = events.length - 1
  let size = events[first]?.size ?? 0
  const least = Math.max(0, events.length - KEPT)
  while (first > least && size + (events[first - 1]?.size ?? 0) <= KEPT_JSON)
    size += events[--first]?.size ?? 0
  return events.slice(Math.max(0, first))
}

const keptOf = (event: StreamEvent): KeptEvent => {
  if (event.event === 'stream:data') {
    const json = JSON.stringify(event.data.payload) ?? 'undefined'
    return { event, size: json.length, summary: `${event.data.data_type}: ${beginningOf(json, SUMMARY)}` }
  }
  if (event.event === 'stream:expired')
    return { event, size: 0, summary: 'earlier events are kept no longer' }
  const { error, status } = event.data.run
  return {
    event,
    size: JSON.stringify(event.data).length,
    summary: error ? `${status}: ${beginningOf(error.message, SUMMARY)}` : status,
  }
}
