import type { Cause } from '../../events/event.ts'
import type { LogLine } from '../../events/runLog.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Stores a part of the output of a run, numbered from 0. A no-op for a part that is already stored. */
export const storeRunOutput = async (
  { aggregates: { runLogs } }: { readonly aggregates: Pick<CommandDeps['aggregates'], 'runLogs'> },
  { run_id, part, lines }: { run_id: string; part: number; lines: readonly LogLine[] },
  cause: Cause,
): Promise<void> => {
  await runLogs.handle(streamOf.runLog(run_id), { type: 'LogLines', run_id, part, lines }, cause, {
    fresh: part === 0,
  })
}
