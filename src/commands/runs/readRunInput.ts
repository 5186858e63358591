import { isOf } from '../../events/event.ts'
import { CALL } from '../../events/eventType.ts'
import { type Payload, payloadOf } from '../../events/payload.ts'
import { streamOf } from '../../events/streams.ts'
import type { RunDoc } from '../../projections/runs.ts'
import type { CommandDeps } from '../deps.ts'
import { readFact } from '../streams/readFact.ts'

/** What a run received, as it is stored: secrets of webhook requests are masked (I6). */
export interface StoredInput {
  readonly kind: 'event' | 'args' | 'webhook' | 'tick'
  /** The data of an event, or of the tick of a schedule; a list of arguments; a request. */
  readonly payload: Payload
  /** The payload is a call, whose field `args` is the list. */
  readonly isCall?: true
  readonly event?: {
    readonly id: string
    readonly type: string
    readonly timestamp: string
    readonly source: string
  }
}

/** Reads the input of a run: that of its first attempt, or of the run that it replays. Null if it is no longer stored. */
export const readRunInput = async (
  { store }: Pick<CommandDeps, 'store'>,
  { run_type, input_at }: Pick<RunDoc, 'run_type' | 'input_at'>,
): Promise<StoredInput | null> => {
  const carrier = input_at && (await readFact(store, streamOf.stream(input_at.stream_id), input_at.revision))
  if (!carrier) return null
  if (isOf(carrier, 'EventPublished')) {
    const { event_id: id, event_type: type, event_time: timestamp, source } = carrier.event
    const payload = payloadOf('event_data', carrier.event)
    if (type === CALL && run_type === 'call') return { kind: 'args', payload, isCall: true }
    return { kind: 'event', payload, event: { id, type, timestamp, source } }
  }
  if (!isOf(carrier, 'RunRequested')) return null
  const { input } = carrier.event
  return input
    ? { kind: input.kind, payload: payloadOf('value', input) }
    : { kind: 'args', payload: { value: [] } }
}
