import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openBlobs } from '../src/adapters/embedded/blobs.ts'
import { openEventStore } from '../src/adapters/embedded/eventStore/index.ts'
import { openReadModels } from '../src/adapters/embedded/readModels/index.ts'
import { openCommands } from '../src/commands/index.ts'
import { streamOf } from '../src/events/streams.ts'
import { newId } from '../src/ids.ts'
import { silent } from '../src/log.ts'
import { Payloads } from '../src/payloads.ts'
import { Projectors } from '../src/projections/projectors.ts'
import { openViews } from '../src/projections/views.ts'
import type { Figure } from './figure.ts'

const STREAMS = 40_000

/** All read models from an empty file, over a log of published events with one run each (5 facts a stream). */
export const rebuild = async (): Promise<Figure[]> => {
  const dir = mkdtempSync(fileURLToPath(new URL('../.bench-', import.meta.url)))
  const store = openEventStore({ dir })
  const readModels = openReadModels({ dir })
  const stop = new AbortController()
  try {
    const commands = openCommands(store)
    const [env_id, worker_id, build_id, project_id] = [newId(), newId(), newId(), newId()]
    const now = new Date().toISOString()
    const one = async (): Promise<void> => {
      const [stream_id, event_id, run_id] = [newId(), newId(), newId()]
      const stream = streamOf.stream(stream_id)
      const cause = { env_id, correlation_id: event_id }
      const data = { value: { order: event_id, lines: [1, 2, 3], note: 'a payload of a usual size' } }
      await commands.streams.handle(
        stream,
        {
          type: 'PublishEvent',
          stream_id,
          env_id,
          event_id,
          event_type: 'order:created',
          data,
          source: 'api',
          create: true,
          now,
        },
        cause,
        { fresh: true },
      )
      const plan = {
        run_id,
        stream_id,
        run_type: 'event',
        build_id,
        project_id,
        project_name: 'bench',
        target: { ns: 'a', var: 'b' },
        attempt: 1,
        event_id,
      } as const
      await commands.streams.handle(
        stream,
        { type: 'DispatchEvent', stream_id, event_id, plans: [plan], worker_id, now },
        cause,
      )
      await commands.streams.handle(stream, { type: 'SucceedRun', run_id, result: data, now }, cause)
    }
    for (let made = 0; made < STREAMS; made += 1000) await Promise.all(Array.from({ length: 1000 }, one))
    const payloads = new Payloads(await openBlobs({ dir: join(dir, 'blobs') }))
    const began = performance.now()
    const progress = new Projectors({ store, readModels, log: silent })
    void progress.run(stop.signal)
    const views = await openViews({ store, readModels, payloads, progress, log: silent }, stop.signal)
    await views.settled()
    const seconds = (performance.now() - began) / 1000
    const { total } = await views.runs.find({
      equal: { env_id, status: 'succeeded' },
      sort: 'order',
      limit: 1,
      offset: 0,
    })
    if (total !== STREAMS) throw new Error(`Expected ${STREAMS} runs after the rebuild, got ${total}`)
    return [
      {
        what: 'rebuild of all read models from the log',
        value: (STREAMS * 5) / seconds,
        unit: 'per s',
        atLeast: 50_000,
      },
    ]
  } finally {
    stop.abort()
    await store.close()
    await readModels.close()
    rmSync(dir, { recursive: true, force: true })
  }
}
