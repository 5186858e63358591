import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Run } from '../../../client/index.ts'
import { recoveries, signIns, textOf } from '../../frame/api.ts'
import { followInBatches } from '../../frame/followInBatches.ts'
import { may } from '../../frame/session.ts'
import { type Emitted, emittedAfter, nothingEmitted } from './emittedData.ts'

/** The data that the runs of a stream emit, live. A signal: only the parts of the page that show the data change with it. */
export const useEmitted = ({ stream_id }: Pick<Run, 'stream_id'>): Signal<Emitted> => {
  const emitted = useSignal(nothingEmitted)
  const attempt = useSignal(0)
  useEffect(() => {
    if (emitted.peek().failure !== '') attempt.value++
  }, [recoveries.value])
  useEffect(() => {
    if (!may('stream', 'read', stream_id)) return
    const connection = new AbortController()
    emitted.value = nothingEmitted
    followInBatches(stream_id, { signal: connection.signal, times: true }, (events) => {
      emitted.value = emittedAfter(emitted.peek(), events)
    }).catch((error: unknown) => {
      if (!connection.signal.aborted) emitted.value = { ...emitted.peek(), failure: textOf(error) }
    })
    return () => connection.abort()
  }, [stream_id, signIns.value, attempt.value])
  return emitted
}
