import { mkdtempSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openEventStore } from '../src/adapters/embedded/eventStore/index.ts'
import type { NewEvent } from '../src/events/event.ts'
import { newId } from '../src/ids.ts'
import type { EventStore } from '../src/ports/eventStore.ts'
import type { Figure } from './figure.ts'
import { percentile } from './load.ts'

const BYTES = 600

/** Events of 600 bytes as the log stores them, made before the clock starts. */
const eventsOf = (stream_id: string, count: number): NewEvent[] =>
  Array.from({ length: count }, () => {
    const event: NewEvent = {
      id: newId(),
      event: { type: 'StreamDataEmitted', run_id: stream_id, stream_id, data_type: 'bench', payload: '' },
      metadata: { correlation_id: stream_id, env_id: stream_id },
    }
    const missing = BYTES - JSON.stringify(event).length
    return { ...event, event: { ...event.event, payload: 'x'.repeat(missing) } as NewEvent['event'] }
  })

const caller = async (
  store: EventStore,
  events: readonly NewEvent[],
  stream: string,
  took: number[],
): Promise<void> => {
  let expected: number | 'none' = 'none'
  for (const event of events) {
    const began = performance.now()
    expected = (await store.append(stream, [event], expected)).revision
    took.push(performance.now() - began)
  }
}

/** Durable appends, each caller on a stream of its own, one after another. */
export const appends = async (): Promise<Figure[]> => {
  const dir = mkdtempSync(fileURLToPath(new URL('../.bench-', import.meta.url)))
  const store = openEventStore({ dir })
  const figures: Figure[] = []
  try {
    for (const [callers, total, atLeast] of [
      [1, 6000, 2000],
      [64, 192_000, 50_000],
      [256, 384_000, 100_000],
    ] as const) {
      const jobs = Array.from({ length: callers }, () => {
        const stream_id = newId()
        return { stream: `stream-${stream_id}`, events: eventsOf(stream_id, total / callers) }
      })
      const took: number[] = []
      const began = performance.now()
      await Promise.all(jobs.map(({ stream, events }) => caller(store, events, stream, took)))
      const seconds = (performance.now() - began) / 1000
      took.sort((a, b) => a - b)
      figures.push(
        {
          what: `durable appends of ${BYTES} bytes, ${callers} callers`,
          value: total / seconds,
          unit: 'per s',
          atLeast,
        },
        { what: '  p99', value: percentile(took, 0.99), unit: 'ms' },
      )
    }
    return figures
  } finally {
    await store.close()
    rmSync(dir, { recursive: true, force: true })
  }
}
