import { clock } from '../../clock.ts'
import { retryIdOf } from '../../domain/run.ts'
import { streamOf } from '../../events/streams.ts'
import type { Caller, CommandDeps } from '../deps.ts'

/** Requests the retry of a failed run (SPEC.md, Retry behavior). The id is derived, so it happens once. */
export const retryRun = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { run_id, stream_id }: { readonly run_id: string; readonly stream_id: string },
  { cause }: Pick<Caller, 'cause'>,
): Promise<void> => {
  await aggregates.streams.handle(
    streamOf.stream(stream_id),
    { type: 'RetryRun', run_id, retry_run_id: retryIdOf(run_id), now: clock.iso() },
    cause,
  )
}
