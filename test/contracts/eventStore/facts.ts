import type { NewEvent, Recorded } from '../../../src/events/event.ts'
import { newId } from '../../../src/ids.ts'

/** A fact of an environment that carries `payload`. */
export const fact = (env_id: string, payload: unknown, id = newId()): NewEvent => ({
  id,
  event: { type: 'StreamDataEmitted', run_id: env_id, stream_id: env_id, data_type: 'test', payload },
  metadata: { env_id, correlation_id: env_id },
})

/** Facts that carry `from`, `from + 1`, … */
export const facts = (env_id: string, count: number, from = 0): NewEvent[] =>
  Array.from({ length: count }, (_, i) => fact(env_id, from + i))

/** A fact of another type. */
export const streamFact = (env_id: string): NewEvent => ({
  id: newId(),
  event: { type: 'StreamCreated', stream_id: env_id },
  metadata: { env_id, correlation_id: env_id },
})

export const payloadOf = ({ event }: Recorded): unknown => ('payload' in event ? event.payload : undefined)

export const numbers = (count: number, from = 0): number[] =>
  Array.from({ length: count }, (_, i) => from + i)

export const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )
