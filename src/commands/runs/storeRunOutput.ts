import type { Cause } from '../../events/event.ts'
import type { RunLogCommand } from '../../domain/runLog.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Stores a part of the output of a run, numbered from 0 by its writer. A no-op for a part that is already stored. */
export const storeRunOutput = async (
  { aggregates: { runLogs } }: { readonly aggregates: Pick<CommandDeps['aggregates'], 'runLogs'> },
  output: Omit<RunLogCommand, 'type'>,
  cause: Cause,
): Promise<void> => {
  await runLogs.handle(streamOf.runLog(output.run_id), { type: 'LogLines', ...output }, cause, {
    fresh: output.part === 0,
  })
}
