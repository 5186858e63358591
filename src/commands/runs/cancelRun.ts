import { clock } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { findRun } from './findRun.ts'

/** Cancels a run of the environment (SPEC.md, Run status). A no-op for an unknown or ended run (I4, I7). */
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
