import { EventStoreDBClient, jsonEvent, NO_STREAM } from '@eventstore/db-client'
import { openEventStoreDb } from '../src/adapters/eventstoredb/index.ts'
import { streamOf } from '../src/events/streams.ts'
import { newId } from '../src/ids.ts'
import { eventOf } from './appends.ts'
import type { Figure } from './figure.ts'
import { openEventStoreServer } from './standIn.ts'

const CALLERS = 64
const APPENDS = 24_000
const ROUNDS = 3

type Append = (stream: string, n: number) => Promise<unknown>

/** Appends per second of callers that each write one event after another to their own stream. */
const rateOf = async (append: Append): Promise<number> => {
  const began = performance.now()
  const caller = async () => {
    const stream = streamOf.stream(newId())
    for (let n = 0; n < APPENDS / CALLERS; n++) await append(stream, n)
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  return (APPENDS / (performance.now() - began)) * 1000
}

/**
 * The bare client (batch, and one call per append) and the adapter of svc, alternating on one server; the best of each.
 */
export const eventStoreDb = async (): Promise<Figure[]> => {
  const { what, url, stop } = await openEventStoreServer()
  const client = EventStoreDBClient.connectionString(url)
  const store = await openEventStoreDb(url)
  const bare =
    (options: { credentials?: { username: string; password: string } }): Append =>
    (stream, n) => {
      const { id: _, event, metadata } = eventOf(stream)
      const { type, ...data } = event
      return client.appendToStream(
        stream,
        jsonEvent({ id: newId(), type, data, metadata: { ...metadata } }),
        {
          expectedRevision: n === 0 ? NO_STREAM : BigInt(n - 1),
          ...options,
        },
      )
    }
  const ways: Record<string, Append> = {
    'our adapter': (stream, n) =>
      store.append(stream, [{ ...eventOf(stream), id: newId() }], n === 0 ? 'none' : n - 1),
    'bare client, batch append': bare({}),
    'bare client, a call for each': bare({ credentials: { username: 'any', password: 'any' } }),
  }
  const best: Record<string, number> = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, append] of Object.entries(ways)) {
      best[name] = Math.max(best[name] ?? 0, await rateOf(append))
    }
  }
  await store.close()
  await client.dispose()
  stop()
  const ratio = (best['our adapter'] ?? 0) / (best['bare client, batch append'] ?? 1)
  return [
    ...Object.entries(best).map(([name, value]) => ({
      what: `appends to ${what}, ${CALLERS} callers: ${name}`,
      value,
      unit: 'per s' as const,
    })),
    {
      what: '  ours against the batch append of the bare client',
      value: ratio * 100,
      unit: '%',
      atLeast: 80,
    },
  ]
}
