import { runningRun } from '../../domain/run.ts'
import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Rejects with `conflict` unless the run is running, so that code which continues after its run changes nothing. */
export const demandRunning = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { run_id, stream_id }: Pick<RunPlan, 'run_id' | 'stream_id'>,
): Promise<void> => {
  await aggregates.streams.read(streamOf.stream(stream_id), ({ runs }) => void runningRun(runs, run_id))
}
