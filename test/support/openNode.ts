import { isoOf } from '../../src/clock.ts'
import { openBlobs } from '../../src/adapters/embedded/blobs.ts'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { hasExpired } from '../../src/commands/orgs/hasExpired.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { START } from '../../src/events/event.ts'
import type { RunPlan } from '../../src/events/run.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import { Payloads } from '../../src/content/payloads.ts'
import { type Progress, Projectors } from '../../src/projections/projectors.ts'
import { openViews } from '../../src/projections/views.ts'
import { openRateLimiter } from '../../src/adapters/embedded/rateLimiter.ts'
import { FairTurns } from '../../src/loops/fairTurns.ts'
import { FunctionRates } from '../../src/plans/functionRates.ts'
import { Quotas } from '../../src/plans/quotas.ts'
import { tempDir } from './tempDir.ts'

export const now = '2026-05-01T10:00:00.000Z'
export const cause = { env_id: 'env', correlation_id: 'test' }

/** The positions of read models, of which one never moves: its projector has stopped. */
const stuckAt = (progress: Progress, stopped: string): Progress => {
  const isStopped = (name: string) => name.startsWith(`${stopped}@`)
  return {
    building: progress.building,
    position: (name) => (isStopped(name) ? START : progress.position(name)),
    reach: (name, cursor, until) =>
      isStopped(name) ? new Promise(() => {}) : progress.reach(name, cursor, until),
  }
}

/** The parts of the service below the API and the runtime, on embedded adapters. `stopped`: the name of a read model. */
export const openNode = async (dir = tempDir(), { stopped }: { readonly stopped?: string } = {}) => {
  const store = openEventStore({ dir })
  const readModels = openReadModels({ dir })
  const blobs = await openBlobs({ dir: `${dir}/blobs` })
  const background = new AbortController()
  const { signal } = background
  const aggregates = openAggregates(store)
  const projectors = new Projectors({ store, readModels, logger: silent })
  void projectors.run(signal)
  const progress = stopped === undefined ? projectors : stuckAt(projectors, stopped)
  const payloads = new Payloads(blobs, { isExpired: (key) => hasExpired({ aggregates }, key) })
  const views = await openViews({ store, readModels, payloads, progress, logger: silent }, signal)
  return {
    dir,
    store,
    blobs,
    payloads,
    aggregates,
    views,
    quotas: new Quotas(views),
    turns: new FairTurns(),
    functionRates: new FunctionRates({ limiter: openRateLimiter(), directory: views.directory }),
    signal,
    /** Events of an svc stream, by type. */
    typesIn: async (stream_id: string) =>
      (await Array.fromAsync(store.read(streamOf.stream(stream_id)))).map(({ event }) => event.type),
    async close() {
      background.abort()
      await blobs.close()
      await readModels.close()
      await store.close()
    },
  }
}

export type Node = Awaited<ReturnType<typeof openNode>>

/** Starts a run of `worker_id` on a new stream. */
export const startRun = async ({ aggregates }: Node, worker_id: string, retry?: RunPlan['retry']) => {
  const [stream_id, event_id, run_id] = [newId(), newId(), newId()]
  const plan: RunPlan = {
    run_id,
    stream_id,
    run_type: 'event',
    build_id: 'build',
    project_id: 'project',
    project_name: 'shop',
    target: { ns: 'orders', var: 'onCreated' },
    attempt: 1,
    event_id,
    input_at: { stream_id, revision: 1 },
    ...(retry && { retry }),
  }
  const at = streamOf.stream(stream_id)
  const publish = {
    type: 'PublishEvent',
    stream_id,
    env_id: 'env',
    event_id,
    event_type: 'x',
    source: 'api',
    create: true,
    now,
  } as const
  await aggregates.streams.handle(at, { ...publish, data: { value: null } }, cause, { fresh: true })
  await aggregates.streams.handle(
    at,
    { type: 'DispatchEvent', stream_id, event_id, plans: [plan], worker_id, now },
    cause,
  )
  return { stream_id, run_id }
}

export const failRun = (
  { aggregates }: Node,
  run: { stream_id: string; run_id: string },
  worker_id: string,
  nowMs: number,
) =>
  aggregates.streams.handle(
    streamOf.stream(run.stream_id),
    {
      type: 'FailRun',
      run_id: run.run_id,
      worker_id,
      error: { code: 'user_error', message: 'broke' },
      now: isoOf(nowMs),
    },
    cause,
  )
