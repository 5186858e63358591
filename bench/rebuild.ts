import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
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
  /** The read models of each rebuild. Default: one rebuild of all. */
  readonly rebuilds?: readonly (readonly Projection[])[]
}

interface Folded {
  readonly perSecond: number
  /** The processor time of all threads for each fact. */
  readonly cpuMicroseconds: number
}

/**
 * Builds all read models in an empty directory, from a log of published events with one run each; then the largest one. In the
 * shorter log, a large part is the start of the threads and the compilation of their code.
 */
export const rebuild = async (): Promise<Figure[]> => {
  const open = (dir: string) => Promise.resolve(openReadModels({ dir }))
  const folding = { open, atOnce: 500, made: false }
  const figures: Figure[] = []
  for (const streams of [100_000, 300_000]) {
    const [all, one] = await foldInto({ ...folding, streams, rebuilds: [allProjections, [runs]] })
    const facts = `${(streams * FACTS_PER_STREAM).toLocaleString('en')} facts`
    figures.push(
      ...figuresOf(`all read models from ${facts}`, all, 100_000),
      ...figuresOf(`the read model of runs from ${facts}`, one, 100_000),
    )
  }
  return figures
}

const figuresOf = (what: string, folded: Folded | undefined, atLeast: number): Figure[] => {
  const { perSecond = NaN, cpuMicroseconds = NaN } = folded ?? {}
  return [
    { what: `rebuild of ${what}`, value: perSecond, unit: 'per s', atLeast },
    { what: '  processor time of svc for each fact', value: cpuMicroseconds, unit: 'µs' },
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
      const [folded] = await foldInto({ open, streams, atOnce: 20, made: true })
      return figuresOf(`all read models into FerretDB, ${streams} runs`, folded, 5000)
    }
    const [folded] = await foldInto({ open, streams: 50_000, atOnce: 500, made: false })
    return figuresOf('all read models into MongoDB', folded, 20_000)
  } finally {
    await client.db().dropDatabase()
    await client.close()
  }
}

/** Publishes runs, and builds read models from their log, once for each rebuild. */
const foldInto = async ({
  open,
  streams,
  atOnce,
  made,
  rebuilds = [allProjections],
}: Folding): Promise<Folded[]> => {
  const dir = mkdtempSync(fileURLToPath(new URL('../.bench-', import.meta.url)))
  const store = openEventStore({ dir })
  const env_id = newId()
  const build = async (number: number, projections: readonly Projection[]) => {
    const readModels = await open(join(dir, `rebuild-${number}`))
    const stop = new AbortController()
    const fill = openFill({ dataDir: dir, store, readModels, logger: silent })
    const projectors = new Projectors({ store, readModels, logger: silent, fill, projections })
    const head = await store.head()
    const began = performance.now()
    const before = process.cpuUsage()
    const running = projectors.run(stop.signal)
    try {
      await Promise.all(projectors.names.map((name) => projectors.reach(name, head)))
      const seconds = (performance.now() - began) / 1000
      const { user, system } = process.cpuUsage(before)
      const equal = { env_id, status: 'succeeded' }
      const { total } = await readModels
        .reader<RunDoc>(runs)
        .find({ equal, sort: 'order', limit: 1, offset: 0 })
      return { seconds, cpuMicroseconds: user + system, succeeded: total }
    } finally {
      stop.abort()
      await running
      await readModels.close()
    }
  }
  try {
    if (made) await build(0, allProjections)
    const publish = publisher(openAggregates(store), env_id)
    for (let done = 0; done < streams; done += atOnce)
      await Promise.all(Array.from({ length: atOnce }, publish))
    const folded: Folded[] = []
    for (const [number, projections] of rebuilds.entries()) {
      const { seconds, cpuMicroseconds, succeeded } = await build(number, projections)
      if (succeeded !== streams)
        throw new Error(`Expected ${streams} runs after the rebuild, got ${succeeded}`)
      const facts = streams * FACTS_PER_STREAM
      folded.push({ perSecond: facts / seconds, cpuMicroseconds: cpuMicroseconds / facts })
    }
    return folded
  } finally {
    await store.close()
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
