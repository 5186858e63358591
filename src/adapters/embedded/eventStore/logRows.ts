import { AppError, messageOf } from '../../../errors.ts'
import type { Metadata, Recorded } from '../../../events/event.ts'
import type { DomainEvent } from '../../../events/index.ts'
import { upcast } from '../../../events/upcast.ts'
import { cursorOf } from './cursors.ts'

/** An event in a row. Its position is the first position of the row plus the number of events before it. */
export type Entry = [
  stream: string,
  revision: number,
  id: string,
  at: string,
  event: DomainEvent,
  metadata: Metadata,
]

/** What is left of a removed event that was the newest of its stream: without it, the stream would begin again. */
type EntryRemains = [stream: string, revision: number]

/** An element of the JSON text of a row; a number counts consecutive events that were removed. */
export type Element = Entry | EntryRemains | number

/** The stream and revision that are left of a removed event. */
export type Remains = Pick<Recorded, 'stream' | 'revision' | 'cursor'>

export interface ParsedRow {
  readonly first: number
  /** The number of its positions. */
  readonly count: number
  readonly events: readonly Recorded[]
  readonly remains: readonly Remains[]
  /** Characters in the log. */
  readonly length: number
}

/**
 * One row contains up to 64 consecutive events as one JSON text: a commit then writes few pages, and a read
 * of one event parses little.
 */
const EVENTS_PER_ROW = 64

/** The largest size of a row with several events, and of a parsed row that is cached, in characters. */
export const PARSED_ROW_LENGTH = 128 << 10

/** Divides events into rows. A row is parsed as a whole, also for one of its events. */
export const rowsOf = (entries: readonly string[]): (readonly string[])[] => {
  const rows: string[][] = []
  let length = 0
  for (const entry of entries) {
    const row = rows.at(-1)
    if (!row || row.length === EVENTS_PER_ROW || length + entry.length > PARSED_ROW_LENGTH) {
      rows.push([entry])
      length = entry.length
    } else {
      row.push(entry)
      length += entry.length
    }
  }
  return rows
}

/** Converts an event to its form in the log, without the position. */
export const entryOf = ({ stream, revision, id, at, event, metadata }: Recorded): string => {
  try {
    return JSON.stringify([stream, revision, id, at, event, metadata] satisfies Entry)
  } catch (error) {
    throw new AppError('bad_request', `Expected facts that can be converted to JSON: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

/** The elements of the text of a row. Throws a `SyntaxError` for a text that is no JSON. */
export const elementsIn = (text: string): readonly Element[] => JSON.parse(text) as Element[]

export const isEntry = (element: Element): element is Entry =>
  typeof element !== 'number' && element.length > 2

export const recordedOf = (
  [stream, revision, id, at, event, metadata]: Entry,
  cursor: Recorded['cursor'],
): Recorded => upcast({ id, stream, revision, cursor, at, event, metadata })

export const parseRow = (first: number, text: string): ParsedRow => {
  const events: Recorded[] = []
  const remains: Remains[] = []
  let position = first
  for (const element of elementsIn(text)) {
    if (typeof element === 'number') {
      position += element
      continue
    }
    const cursor = cursorOf(position++)
    if (isEntry(element)) events.push(recordedOf(element, cursor))
    else remains.push({ stream: element[0], revision: element[1], cursor })
  }
  return { first, count: position - first, events, remains, length: text.length }
}

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c]
const OPENING = new Set([0x5b, 0x7b])
const CLOSING = new Set([0x5d, 0x7d])

/** The text of each element of the text of a row: an event that stays is not written in another form. */
export const elementTextsIn = (text: string): string[] => {
  const found: string[] = []
  let depth = 0
  let begin = 1
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (OPENING.has(code)) depth++
    else if (CLOSING.has(code) && --depth === 0) {
      found.push(text.slice(begin, at))
      return found
    } else if (code === COMMA && depth === 1) {
      found.push(text.slice(begin, at))
      begin = at + 1
    }
  }
  throw new SyntaxError('the text of a row ends early')
}

const endOfString = (text: string, begin: number): number => {
  for (let at = text.indexOf('"', begin + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return at
  }
  throw new SyntaxError('a string in the text of a row has no end')
}
