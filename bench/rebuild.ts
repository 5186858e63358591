import { mkdtempSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { MongoClient } from 'mongodb'
import { openEventStore } from '../src/adapters/embedded/eventStore/index.ts'
import { openReadModels } from '../src/adapters/embedded/readModels/index.ts'
import { type Aggregates, openAggregates } from '../src/domain/aggregates.ts'
import { streamOf } from '../src/events/streams.ts'
import { newId } from '../src/ids.ts'
import { silent } from '../src/logger.ts'
import type { ReadModels } from '../src/ports/readModels.ts'
import { openFill } from '../src/process/filling/fill.ts'
import { allProjections } from '../src/projections/index.ts'
import type { Projection } from '../src/projections/projection.ts'
import { runs, type RunDoc } from '../src/projections/runs.ts'
import { Projectors } from '../src/projections/projectors.ts'
import { isFerretDB1 } from '../test/support/mongoReadModels.ts'
import type { Figure } from './figure.ts'

const FACTS_PER_STREAM = 5

interface Folding {
  readonly open: (dir: string) => Promise<ReadModels>
  readonly streams: number
  /** Concurrent runs: a run that starts and ends in one batch of a projector is one write. */
  readonly atOnce: number
  /** Whether the collections already exist and are empty. */
  readonly made: boolean
  /** Default: all. */
  readonly projections?: readonly Projection[]
}

/** Builds all read models in an empty directory, from a log of published events with one run each; then the largest one. */
export const rebuild = async (): Promise<Figure[]> => {
  const open = (dir: string) => Promise.resolve(openReadModels({ dir }))
  const folding: Folding = { open, streams: 100_000, atOnce: 500, made: false }
  const all = await foldInto(folding)
  const one = await foldInto({ ...folding, projections: [runs] })
  return [
    {
      what: 'rebuild of all read models from the log',
      value: all.perSecond,
      unit: 'per s',
      atLeast: 100_000,
    },
    { what: 'processor time of that for each fact', value: all.cpuMicroseconds, unit: 'µs' },
    { what: 'rebuild of the read model of runs', value: one.perSecond, unit: 'per s', atLeast: 100_000 },
    { what: 'processor time of that for each fact', value: one.cpuMicroseconds, unit: 'µs' },
  ]
}

/**
 * The same with the server of `SVC_TEST_MONGODB`. FerretDB 1 scans all documents per update, so it gets few runs in collections that
 * exist, and its figure says nothing about MongoDB.
 */
export const projectorIntoServer = async (): Promise<Figure[]> => {
  const server = process.env['SVC_TEST_MONGODB']
  if (!server) return []
  const { openMongoReadModels } = await import('../src/adapters/mongodb/index.ts')
  const url = server.replace(/^(\w+:\/\/[^/]+)\/[^?]*/, `$1/svc_bench_${newId().slice(-12)}`)
  const open = () => openMongoReadModels({ url })
  const client = new MongoClient(url)
  try {
    if (await isFerretDB1(client)) {
      const streams = 500
      const { perSecond } = await foldInto({ open, streams, atOnce: 20, made: true })
      const what = `projector into FerretDB, ${streams} runs`
      return [{ what, value: perSecond, unit: 'per s', atLeast: 5000 }]
    }
    const { perSecond, cpuMicroseconds } = await foldInto({ open, streams: 50_000, atOnce: 500, made: false })
    const what = 'rebuild of all read models into MongoDB'
    return [
      { what, value: perSecond, unit: 'per s', atLeast: 20_000 },
      { what: 'processor time of that for each fact, of svc', value: cpuMicroseconds, unit: 'µs' },
    ]
  } finally {
    await client.db().dropDatabase()
    await client.close()
  }
}

/** Facts per second that projections together fold into read models, and the processor time for each, of all threads. */
const foldInto = async ({
  open,
  streams,
  atOnce,
  made,
  projections = allProjections,
}: Folding): Promise<{ readonly perSecond: number; readonly cpuMicroseconds: number }> => {
  const dir = mkdtempSync(fileURLToPath(new URL('../.bench-', import.meta.url)))
  const store = openEventStore({ dir })
  const readModels = await open(dir)
  const stop = new AbortController()
  const fill = openFill({ dataDir: dir, store, readModels, logger: silent })
  const catchUp = async (signal: AbortSignal): Promise<void> => {
    const progress = new Projectors({ store, readModels, logger: silent, fill, projections })
    void progress.run(signal)
    const head = await store.head()
    await Promise.all(progress.names.map((name) => progress.reach(name, head)))
  }
  try {
    if (made) {
      const making = new AbortController()
      await catchUp(making.signal)
      making.abort()
    }
    const env_id = newId()
    const publish = publisher(openAggregates(store), env_id)
    for (let done = 0; done < streams; done += atOnce)
      await Promise.all(Array.from({ length: atOnce }, publish))
    const began = performance.now()
    const before = process.cpuUsage()
    await catchUp(stop.signal)
    const seconds = (performance.now() - began) / 1000
    const { user, system } = process.cpuUsage(before)
    const equal = { env_id, status: 'succeeded' }
    const { total } = await readModels
      .reader<RunDoc>(runs)
      .find({ equal, sort: 'order', limit: 1, offset: 0 })
    if (total !== streams) throw new Error(`Expected ${streams} runs after the rebuild, got ${total}`)
    const facts = streams * FACTS_PER_STREAM
    return { perSecond: facts / seconds, cpuMicroseconds: (user + system) / facts }
  } finally {
    stop.abort()
    await store.close()
    await readModels.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Publishes an event on its own stream; its only handler succeeds. */
const publisher = ({ streams }: Aggregates, env_id: string) => {
  const [worker_id, build_id, project_id] = [newId(), newId(), newId()]
  const now = new Date().toISOString()
  return async (): Promise<void> => {
    const [stream_id, event_id, run_id] = [newId(), newId(), newId()]
    const stream = streamOf.stream(stream_id)
    const cause = { env_id, correlation_id: event_id }
    const data = { value: { order: event_id, lines: [1, 2, 3], note: 'a payload of a usual size' } }
    const event = { stream_id, env_id, event_id, event_type: 'order:created', data, source: 'api', now }
    await streams.handle(stream, { type: 'PublishEvent', ...event, create: true }, cause, { fresh: true })
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
    const dispatched = { stream_id, event_id, plans: [plan], worker_id, now }
    await streams.handle(stream, { type: 'DispatchEvent', ...dispatched }, cause)
    await streams.handle(stream, { type: 'SucceedRun', run_id, result: data, worker_id, now }, cause)
  }
}
