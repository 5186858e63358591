import type { EnvCause } from '../../events/event.ts'
import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Returns a claimed run whose code has not begun: it is requested again, so the group delivers it to a worker (I3). A
 * no-op if the run has ended or belongs to another worker.
 */
export const returnRun = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  {
    plan: { run_id, stream_id },
    worker_id,
  }: { plan: Pick<RunPlan, 'run_id' | 'stream_id'>; worker_id: string },
  cause: EnvCause,
): Promise<void> => {
  await aggregates.streams.handle(streamOf.stream(stream_id), { type: 'ReturnRun', run_id, worker_id }, cause)
}
