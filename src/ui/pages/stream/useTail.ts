import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { isUnanswered, recoveries, signIns } from '../../frame/api.ts'
import { isAway } from '../../frame/away.ts'
import { followInBatches } from '../../frame/followInBatches.ts'
import { useLive } from '../../frame/live.ts'
import { continued, emptyTail, type Tail } from './tail.ts'

type State = 'connecting' | 'live' | 'complete' | 'failed'

export interface Followed {
  readonly tail: Tail
  readonly state: State
  readonly error: Error | undefined
  /** While true, what arrives is kept but not shown. */
  readonly isPaused: Signal<boolean>
  /** Events that arrived during the pause. */
  readonly hidden: number
  /** Continues after the last event, for a stream that was complete or failed. */
  readonly continue: () => void
}

/**
 * Follows a stream from a position.
 * F1: each connection begins after the last event that arrived, so no event is lost or shown twice.
 * F2: a complete stream is followed again when the environment reports something new in it.
 * While the reader is away, there is no connection.
 */
export const useTail = (stream_id: string, from: string): Followed => {
  const received = useSignal(emptyTail)
  const shown = useSignal(emptyTail)
  const state = useSignal<State>('connecting')
  const error = useSignal<Error | undefined>(undefined)
  const isPaused = useSignal(false)
  const attempt = useSignal(0)
  const last = useRef<string | undefined>(undefined)
  const hasMore = useRef(false)

  useEffect(() => {
    last.current = undefined
    received.value = emptyTail
    isPaused.value = false
  }, [stream_id, from])

  useEffect(() => {
    if (isAway.value) return
    const connection = new AbortController()
    const follow = (): Promise<void> => {
      hasMore.current = false
      state.value = 'connecting'
      error.value = undefined
      const options = {
        from: last.current ?? from,
        signal: connection.signal,
        onOpen: () => (state.value = 'live'),
      }
      return followInBatches(stream_id, options, (events) => {
        last.current = events.at(-1)?.id // F1
        received.value = continued(received.peek(), events)
      })
    }
    follow().then(
      () => {
        if (connection.signal.aborted) return
        state.value = 'complete'
        if (hasMore.current) attempt.value++ // F2: it was reported before the end arrived
      },
      (failure: unknown) => {
        if (connection.signal.aborted) return
        error.value = failure instanceof Error ? failure : new Error(String(failure))
        state.value = 'failed'
      },
    )
    return () => connection.abort()
  }, [stream_id, from, attempt.value, signIns.value, isAway.value])

  useEffect(() => {
    if (state.peek() === 'failed' && isUnanswered(error.peek())) attempt.value++
  }, [recoveries.value])

  useLive((update) => {
    if (update.event === 'calls:expired') return
    const isHere = update.event === 'gap' || update.data.stream_id === stream_id
    if (!isHere) return
    if (state.value === 'complete') attempt.value++ // F2
    else hasMore.current = true
  })

  useEffect(() => {
    if (!isPaused.value) shown.value = received.value
  }, [isPaused.value, received.value])

  return {
    tail: shown.value,
    state: state.value,
    error: error.value,
    isPaused,
    hidden: received.value.count - shown.value.count,
    continue: () => attempt.value++,
  }
}
