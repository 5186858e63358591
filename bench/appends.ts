import { mkdtempSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openEventStore } from '../src/adapters/embedded/eventStore/index.ts'
import type { NewEvent } from '../src/events/event.ts'
import { streamOf } from '../src/events/streams.ts'
import { newId } from '../src/ids.ts'
import type { EventStore } from '../src/ports/eventStore.ts'
import type { Figure } from './figure.ts'
import { percentile } from './load.ts'

const BYTES = 600

/** An event of 600 bytes in the log; the appends of a caller differ only in their ids. */
export const eventOf = (stream_id: string): NewEvent => {
  const event = { type: 'StreamDataEmitted', run_id: stream_id, stream_id, data_type: 'bench' } as const
  const metadata = { correlation_id: stream_id, env_id: stream_id }
  const missing = BYTES - JSON.stringify({ id: newId(), event: { ...event, payload: '' }, metadata }).length
  return { id: '', event: { ...event, payload: 'x'.repeat(missing) }, metadata }
}

const caller = async (store: EventStore, appends: number, took: number[]): Promise<void> => {
  const stream_id = newId()
  const event = eventOf(stream_id)
  let expected: number | 'none' = 'none'
  for (let n = 0; n < appends; n++) {
    const began = performance.now()
    expected = (await store.append(streamOf.stream(stream_id), [{ ...event, id: newId() }], expected))
      .revision
    took.push(performance.now() - began)
  }
}

/** Durable appends, one after another per caller, each caller on its own stream. */
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
      const took: number[] = []
      const began = performance.now()
      await Promise.all(Array.from({ length: callers }, () => caller(store, total / callers, took)))
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
