import { clock } from '../../clock.ts'
import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Records that a worker has started. `node` is the name of its process for operators. Rejects with `not_found` if a worker
 * with this id has ended: the reply to an earlier attempt was lost, and the worker was declared lost meanwhile.
 */
export const startWorker = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { worker_id, node }: { worker_id: string; node: string },
): Promise<void> => {
  await aggregates.workers.handle(
    streamOf.worker(worker_id),
    { type: 'StartWorker', worker_id, node, now: clock.iso() },
    { correlation_id: worker_id, ...bySystem('worker') },
  )
}
