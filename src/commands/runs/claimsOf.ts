import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** The running runs of a stream that a worker has claimed. */
export const claimsOf = (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { stream_id, worker_id }: { stream_id: string; worker_id: string },
): Promise<readonly RunPlan[]> =>
  aggregates.streams.read(streamOf.stream(stream_id), ({ runs }) =>
    [...runs.values()].flatMap((run) =>
      run.status === 'running' && run.workerId === worker_id ? [run.plan] : [],
    ),
  )
