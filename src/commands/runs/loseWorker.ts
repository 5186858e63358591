import { clock } from '../../clock.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import type { WorkerDoc } from '../../projections/workers.ts'
import type { CommandDeps } from '../deps.ts'

type Deps = Pick<CommandDeps, 'aggregates'> & { readonly views: Pick<CommandDeps['views'], 'runs'> }

/**
 * Fails the runs of a dead worker with `worker_lost`; the retry policy then applies (I3; SPEC.md, Retry behavior). The
 * worker is marked lost last, so this can be repeated after a crash. Resolves with the number of ended runs.
 */
export const loseWorker = async (
  { aggregates, views }: Deps,
  { worker_id }: { readonly worker_id: string },
): Promise<number> => {
  let ended = 0
  const left = { id: 'run_id', equal: { worker_id }, sort: 'running_since', from: '' } as const
  for await (const { run_id, stream_id, env_id } of everyDoc(views.runs, left)) {
    const { events } = await aggregates.streams.handle(
      streamOf.stream(stream_id),
      {
        type: 'FailRun',
        run_id,
        worker_id,
        error: { code: 'worker_lost', message: 'The worker died before the run ended' },
        now: clock.iso(),
        nowMs: clock.now(),
      },
      { env_id, correlation_id: run_id, causation_id: worker_id },
    )
    ended += events.length
  }
  await aggregates.workers.handle(
    streamOf.worker(worker_id),
    { type: 'LoseWorker', worker_id, now: clock.iso() },
    { correlation_id: worker_id },
  )
  return ended
}

/** Yields the workers that are not known to have ended. */
export const aliveWorkers = ({ workers }: Pick<CommandDeps['views'], 'workers'>): AsyncGenerator<WorkerDoc> =>
  everyDoc(workers, { id: 'worker_id', equal: { alive: true }, sort: 'order' })
