import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import { streamOf } from '../events/streams.ts'
import { everyDoc } from '../loops/pages.ts'
import type { Logger } from '../logger.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Collection } from '../ports/readModels.ts'
import type { RunDoc } from '../projections/runs.ts'
import type { Views } from '../projections/views.ts'
import type { WorkerDoc } from '../projections/workers.ts'

/** The workers that are not known to have ended. */
const WORKERS = { id: 'worker_id', equal: { alive: true }, sort: 'order' } as const

interface Deps {
  readonly aggregates: Pick<Aggregates, 'streams' | 'workers'>
  readonly runs: Collection<RunDoc>
  readonly workers: Collection<WorkerDoc>
  readonly logger: Logger
}

/**
 * Ends what dead workers left running: `failed` with `worker_lost`, after which the retry policy speaks
 * (I3). A worker is marked lost after its runs have ended, so a crash in between begins again.
 */
export const loseWorkers = async (deps: Deps, isDead: (worker_id: string) => boolean): Promise<void> => {
  for await (const { worker_id, node } of everyDoc(deps.workers, WORKERS)) {
    if (!isDead(worker_id)) continue
    const ended = await endRunsOf(deps, worker_id)
    const cause = { correlation_id: worker_id }
    await deps.aggregates.workers.handle(
      streamOf.worker(worker_id),
      { type: 'LoseWorker', worker_id, now: clock.iso() },
      cause,
    )
    deps.logger.warn('A worker was lost', { worker_id, node, runs_ended: ended })
  }
}

/** A worker that gave no sign of life for this long is believed dead, milliseconds. */
const LOST_MS = 6000
const LOOK_MS = 1000

/** Ends the runs of workers that fall silent, until the signal aborts. Any number of nodes may watch. */
export const watchWorkers = async (
  {
    store,
    aggregates,
    views,
    logger,
  }: {
    store: EventStore
    aggregates: Deps['aggregates']
    views: Pick<Views, 'runs' | 'workers' | 'reach'>
    logger: Logger
  },
  signs: { silentMs(id: string): number; forget(id: string): void },
  signal: AbortSignal,
): Promise<void> => {
  const deps = { aggregates, runs: views.runs, workers: views.workers, logger }
  while (!signal.aborted) {
    const dead: string[] = []
    for await (const { worker_id } of everyDoc(views.workers, WORKERS)) {
      if (signs.silentMs(worker_id) > LOST_MS) dead.push(worker_id)
    }
    if (dead.length > 0) {
      await views.reach(await store.head()) // what they claimed last is known
      await loseWorkers(deps, (id) => dead.includes(id))
      for (const id of dead) signs.forget(id)
    }
    await delay(LOOK_MS, undefined, { signal }).catch(() => {})
  }
}

const endRunsOf = async ({ aggregates, runs }: Deps, worker_id: string): Promise<number> => {
  let ended = 0
  for await (const { run_id, stream_id, env_id } of everyDoc(runs, {
    id: 'run_id',
    equal: { worker_id },
    sort: 'running_since',
    from: '',
  })) {
    const { events } = await aggregates.streams.handle(
      streamOf.stream(stream_id),
      {
        type: 'FailRun',
        run_id,
        worker_id,
        error: { code: 'worker_lost', message: 'The worker that ran this died before it ended' },
        now: clock.iso(),
        nowMs: clock.now(),
      },
      { env_id, correlation_id: run_id, causation_id: worker_id },
    )
    ended += events.length
  }
  return ended
}
