import { clock } from '../../clock.ts'
import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Records that a worker has stopped. Its runs must have ended. */
export const stopWorker = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { worker_id }: { worker_id: string },
): Promise<void> => {
  await aggregates.workers.handle(
    streamOf.worker(worker_id),
    { type: 'StopWorker', worker_id, now: clock.iso() },
    { correlation_id: worker_id, ...bySystem('worker') },
  )
}
