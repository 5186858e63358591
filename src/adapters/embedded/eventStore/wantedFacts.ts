import type { Recorded } from '../../../events/event.ts'
import type { StoredRow } from '../../../ports/storedLog.ts'
import { cursorOf } from './cursors.ts'
import { damagedLog } from './damagedLog.ts'
import { type Entry, parseRow, recordedOf } from './logRows.ts'

/** Selects facts by their type. */
export type WantedTypes = Pick<ReadonlySet<string>, 'has'>

/** The end of an entry, and the comma before the next element. Payloads may contain the same characters. */
const END = '}],'
const [QUOTE, BRACKET] = [0x22, 0x5b]
/** The fields of an entry before its fact, and the type of the fact. */
const HEAD = /\["[^"\\]*",\d+,"[^"\\]*","[^"\\]*",\{"type":"([^"\\]*)"/y

/**
 * Returns the facts of some types, or all of them, in a row. It parses only these, if it can divide the row without doubt:
 * the facts of one type are often a fraction of the log.
 */
export const wantedIn = (row: StoredRow, wanted: WantedTypes | null): readonly Recorded[] => {
  const { first, count, text } = row
  const found = wanted && divided(row)
  if (!wanted || !found) {
    const parsed = parseRow(first, text)
    if (parsed.count !== count) throw damagedLog(first, first + count - 1, `found ${parsed.count}`)
    return wanted ? parsed.events.filter(({ event }) => wanted.has(event.type)) : parsed.events
  }
  const { begins, types, end } = found
  const events: Recorded[] = []
  for (let at = 0; at < count; at++) {
    if (!wanted.has(types[at] ?? '')) continue
    const entry = text.slice(begins[at], at + 1 < count ? (begins[at + 1] ?? 0) - 1 : end)
    events.push(recordedOf(JSON.parse(entry) as Entry, cursorOf(first + at)))
  }
  return events
}

/**
 * Divides a row without a parser; null if that is not certain, as without a checksum. D1: the first element that is no entry begins the text or follows
 * `END`. A number there is seen at once, and a remainder is no `HEAD`. So the row has entries only. D2: each of them but the
 * last ends with `END` and `["`. As many places with these characters as entries are the entries, and none is in a payload.
 */
const divided = ({
  text,
  count,
}: StoredRow): { readonly begins: number[]; readonly types: string[]; readonly end: number } | null => {
  if (text.endsWith(']')) return null
  const begins: number[] = [1]
  const types: string[] = []
  for (let at = text.indexOf(END); at >= 0; at = text.indexOf(END, at + 1)) {
    const begin = at + END.length
    const code = text.charCodeAt(begin)
    if (isDigit(code)) return null
    if (code === BRACKET && text.charCodeAt(begin + 1) === QUOTE) begins.push(begin)
    if (begins.length > count) return null
  }
  if (begins.length !== count) return null
  for (const begin of begins) {
    HEAD.lastIndex = begin
    const type = HEAD.exec(text)?.[1]
    if (type === undefined) return null
    types.push(type)
  }
  const end = text.lastIndexOf(']')
  return { begins, types, end }
}

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
