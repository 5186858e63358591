import { everyDoc } from '../../loops/everyDoc.ts'
import { runsOn } from '../../projections/runs.ts'
import type { WorkerDoc } from '../../projections/workers.ts'
import type { CommandDeps } from '../deps.ts'

interface Views {
  readonly runs: Pick<CommandDeps['views']['runs'], 'find'>
  readonly workers: Pick<CommandDeps['views']['workers'], 'find' | 'get'>
}

export interface DeadWorker {
  readonly worker_id: string
  /** The name of its process; null if the worker never registered. */
  readonly node: string | null
}

/** The registered workers that have not stopped and were not marked lost. */
export const livingWorkers = ({
  workers,
}: {
  readonly workers: Pick<Views['workers'], 'find'>
}): Promise<WorkerDoc[]> =>
  Array.fromAsync(everyDoc(workers, { id: 'worker_id', equal: { alive: true }, sort: 'order' }))

/**
 * Yields every worker without a life that still has runs: it stopped, was marked lost, or never registered. Runs decide,
 * so it does not matter what ended the worker (I3).
 */
export async function* formerWorkers(views: Views, living: readonly WorkerDoc[]): AsyncGenerator<DeadWorker> {
  // Only the gaps between the runs of living workers are read, so this costs little while there are many of these.
  let from = ''
  for (const worker_id of living.map((worker) => worker.worker_id).sort()) {
    const own = runsOn(worker_id)
    yield* ownersBetween(views, from, own.from)
    from = own.before
  }
  yield* ownersBetween(views, from)
}

/** Yields the registered workers that are lost, and the former ones that still have runs. */
export async function* deadWorkers(
  views: Views,
  isLost: (worker_id: string) => boolean,
): AsyncGenerator<DeadWorker> {
  const living = await livingWorkers(views)
  yield* living.filter(({ worker_id }) => isLost(worker_id))
  yield* formerWorkers(views, living)
}

/** Whether the worker is dead, by read models that contain everything known when its runs were found. */
export const isDead = async (
  { workers }: Pick<Views, 'workers'>,
  worker_id: string,
  isLost: (worker_id: string) => boolean,
): Promise<boolean> => !(await workers.get(worker_id))?.alive || isLost(worker_id)

async function* ownersBetween(views: Views, from: string, before?: string): AsyncGenerator<DeadWorker> {
  for (;;) {
    const bounds = { from, ...(before !== undefined && { before }) }
    const { items } = await views.runs.find({ equal: {}, sort: 'running_on', ...bounds, limit: 1, offset: 0 })
    const [run] = items
    if (!run) return
    const { worker_id } = run
    yield { worker_id, node: (await views.workers.get(worker_id))?.node ?? null }
    from = runsOn(worker_id).before
  }
}
