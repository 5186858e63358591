import { clock } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { findRun } from './findRun.ts'

/** Ends a run of the environment as cancelled. An unknown run and one that has ended stay as they are (I4, I7). */
export const cancelRun = async (
  deps: Pick<CommandDeps, 'store' | 'views' | 'aggregates'>,
  run_id: string,
  cause: EnvCause,
): Promise<void> => {
  const run = await findRun(deps, run_id, cause.env_id)
  if (!run) return
  await deps.aggregates.streams.handle(
    streamOf.stream(run.stream_id),
    { type: 'CancelRun', run_id, now: clock.iso() },
    cause,
  )
}
