import * as assert from 'uvu/assert'
import type { NewEvent, Recorded } from '../../../src/events/event.ts'
import { newId } from '../../../src/ids.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'

const LARGE = 60_000
const LARGE_EACH = 8

/** A fact of an environment that carries `payload`. */
export const fact = (env_id: string, payload: unknown, id = newId()): NewEvent => ({
  id,
  event: { type: 'StreamDataEmitted', run_id: env_id, stream_id: env_id, data_type: 'test', payload },
  metadata: { env_id, correlation_id: env_id },
})

/** Facts that carry `from`, `from + 1`, … */
export const facts = (env_id: string, count: number, from = 0): NewEvent[] =>
  Array.from({ length: count }, (_, i) => fact(env_id, from + i))

/** Appends facts of 60,000 characters, eight at a time, because a server refuses a larger append. */
export const appendLarge = async (store: EventStore, stream: string, count: number, from = 0) => {
  for (let i = from; i < from + count; i += LARGE_EACH) {
    const some = numbers(Math.min(LARGE_EACH, from + count - i), i)
    const events = some.map((number) => fact(stream, String(number).padEnd(LARGE)))
    await store.append(stream, events, i === 0 ? 'none' : i - 1)
  }
}

/** Asserts that a reader got whole batches of large facts in order, and that each fits in a mebibyte beside its last fact. */
export const areSmall = (
  batches: readonly { readonly events: readonly Recorded[] }[],
  count: number,
): void => {
  const events = batches.flatMap((batch) => batch.events)
  assert.equal(
    events.map((event) => Number(payloadOf(event))),
    numbers(count),
  )
  const largest = Math.max(...batches.map((batch) => batch.events.length))
  assert.ok((largest - 1) * LARGE < 1 << 20, `a batch has ${largest} facts of ${LARGE} characters`)
}

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
