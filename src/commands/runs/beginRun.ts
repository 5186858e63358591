import type { EnvCause } from '../../events/event.ts'
import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

export { GoneRun } from '../../domain/run.ts'

/**
 * Marks that the code of a claimed run may begin from now on. If its worker dies before, another worker executes the run.
 * Rejects with `GoneRun` if the run has ended or belongs to another worker: its code must not begin here.
 */
export const beginRun = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  {
    plan: { run_id, stream_id },
    worker_id,
  }: { plan: Pick<RunPlan, 'run_id' | 'stream_id'>; worker_id: string },
  cause: EnvCause,
): Promise<void> => {
  await aggregates.streams.handle(streamOf.stream(stream_id), { type: 'BeginRun', run_id, worker_id }, cause)
}
