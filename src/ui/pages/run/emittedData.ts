import type { StreamEvent } from '../../../client/index.ts'
import { beginningOf } from '../../parts/beginningOf.ts'

/** The newest data of the stream that the page keeps. */
export const KEPT = 20_000
/** The characters of each that the page shows. */
const SHOWN = 500

/** Data that a run emitted. `at` is in milliseconds since 1970. */
export interface Datum {
  readonly id: string
  readonly run_id: string
  readonly type: string
  readonly text: string
  /** It is a text as a whole, such as a token of a language model: `text` is its JSON. */
  readonly isText: boolean
  readonly at: number
}

/** The data of a run that the page no longer keeps. Times are in milliseconds since 1970. */
export interface LeftOut {
  readonly count: number
  readonly from: number
  readonly to: number
}

export interface Emitted {
  /** The oldest first. */
  readonly data: readonly Datum[]
  /** By run. */
  readonly leftOut: ReadonlyMap<string, LeftOut>
  /** Why the stream is no longer followed; empty while it is. */
  readonly failure: string
}

export const nothingEmitted: Emitted = { data: [], leftOut: new Map(), failure: '' }

const dataIn = (events: readonly StreamEvent[]): Datum[] =>
  events.flatMap(({ id, event, data }) => {
    if (event !== 'stream:data') return []
    const { run_id, data_type: type, payload, emitted_at } = data
    const json = JSON.stringify(payload) ?? 'undefined'
    const isText = typeof payload === 'string' && json.length <= SHOWN
    return [{ id, run_id, type, text: beginningOf(json, SHOWN), isText, at: Date.parse(emitted_at ?? '') }]
  })

/** Data in a row whose texts continue each other: the pieces of one text are read as that text. */
export const runningTexts = (data: readonly Datum[]): readonly (readonly Datum[])[] => {
  const rows: Datum[][] = []
  for (const datum of data) {
    const row = rows.at(-1)
    const before = row?.at(-1)
    if (row && before?.isText && datum.isText && before.type === datum.type) row.push(datum)
    else rows.push([datum])
  }
  return rows
}

/** What was emitted after further events of the stream, in their order. */
export const emittedAfter = (emitted: Emitted, events: readonly StreamEvent[]): Emitted => {
  const found = dataIn(events)
  if (found.length === 0) return emitted
  const data = [...emitted.data, ...found]
  const leftOut = new Map(emitted.leftOut)
  for (const { run_id, at } of data.slice(0, Math.max(0, data.length - KEPT))) {
    const { count, from } = leftOut.get(run_id) ?? { count: 0, from: at }
    leftOut.set(run_id, { count: count + 1, from, to: at })
  }
  return { data: data.slice(-KEPT), leftOut, failure: '' }
}
