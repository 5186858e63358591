import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Run, StreamEvent } from '../../../client/index.ts'
import { textOf } from '../../frame/api.ts'
import { followInBatches } from '../../frame/followInBatches.ts'
import { may } from '../../frame/session.ts'

/** The newest data of the stream that the page keeps. */
const KEPT = 20_000
/** The characters of each that the page shows. */
const SHOWN = 500

/** Data that a run emitted. `at` is in milliseconds since 1970. */
export interface Datum {
  readonly id: string
  readonly run_id: string
  readonly type: string
  readonly text: string
  readonly at: number
}

export interface Emitted {
  /** The oldest first. */
  readonly data: readonly Datum[]
  /** Why the stream is no longer followed; empty while it is. */
  readonly failure: string
}

const dataIn = (events: readonly StreamEvent[]): Datum[] =>
  events.flatMap(({ id, event, data }) => {
    if (event !== 'stream:data') return []
    const { run_id, data_type: type, payload, emitted_at } = data
    const text = (JSON.stringify(payload) ?? 'undefined').slice(0, SHOWN)
    return [{ id, run_id, type, text, at: Date.parse(emitted_at ?? '') }]
  })

/** The data that the runs of a stream emit, live. A signal: only the parts of the page that show the data change with it. */
export const useEmitted = ({ stream_id }: Pick<Run, 'stream_id'>): Signal<Emitted> => {
  const emitted = useSignal<Emitted>({ data: [], failure: '' })
  useEffect(() => {
    if (!may('stream', 'read', stream_id)) return
    const connection = new AbortController()
    emitted.value = { data: [], failure: '' }
    followInBatches(stream_id, { signal: connection.signal, times: true }, (events) => {
      const found = dataIn(events)
      if (found.length === 0) return
      emitted.value = { data: [...emitted.peek().data, ...found].slice(-KEPT), failure: '' }
    }).catch((error: unknown) => {
      if (!connection.signal.aborted) emitted.value = { ...emitted.peek(), failure: textOf(error) }
    })
    return () => connection.abort()
  }, [stream_id])
  return emitted
}
