import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Run } from '../../../client/index.ts'
import { recoveries, signIns, textOf } from '../../frame/api.ts'
import { isAway } from '../../frame/away.ts'
import { followInBatches } from '../../frame/followInBatches.ts'
import { may } from '../../frame/session.ts'
import { type Emitted, emittedAfter, nothingEmitted } from './emittedData.ts'

/** The data that the runs of a stream emit, live. A signal: only the parts of the page that show the data change with it. */
export const useEmitted = ({ stream_id }: Pick<Run, 'stream_id'>): Signal<Emitted> => {
  const emitted = useSignal(nothingEmitted)
  const attempt = useSignal(0)
  const last = useRef<string | undefined>(undefined)
  useEffect(() => {
    last.current = undefined
    emitted.value = nothingEmitted
  }, [stream_id, signIns.value])
  useEffect(() => {
    if (emitted.peek().failure !== '') attempt.value++
  }, [recoveries.value])
  useEffect(() => {
    if (isAway.value || !may('stream', 'read', stream_id)) return
    const connection = new AbortController()
    emitted.value = { ...emitted.peek(), failure: '' }
    const options = { from: last.current ?? 'start', signal: connection.signal, times: true }
    followInBatches(stream_id, options, (events) => {
      last.current = events.at(-1)?.id
      emitted.value = emittedAfter(emitted.peek(), events)
    }).catch((error: unknown) => {
      if (!connection.signal.aborted) emitted.value = { ...emitted.peek(), failure: textOf(error) }
    })
    return () => connection.abort()
  }, [stream_id, signIns.value, attempt.value, isAway.value])
  return emitted
}
