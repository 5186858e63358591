import type { CommandDeps } from '../deps.ts'
import { findCall } from './findCall.ts'
import { findRun } from './findRun.ts'

/** Where the facts of a run are, or will be. */
export interface RunPlace {
  readonly stream_id: string
  /** The `svc:call` event that starts the run, if no worker has handled it. */
  readonly event_id?: string
}

/**
 * Finds a run of the environment, also one that only waits: it was requested, or `call` returned its id. Null for any
 * other (I7). Throws `unavailable` if the read models are too far behind the log.
 */
export const locateRun = async (
  deps: Pick<CommandDeps, 'views' | 'payloads'>,
  run_id: string,
  env_id: string,
): Promise<RunPlace | null> => {
  const { views } = deps
  await views.settled('waitingRuns', 'events')
  const requested = await views.waitingRuns.get(run_id)
  if (requested) return requested.env_id === env_id ? { stream_id: requested.stream_id } : null
  // A run leaves `waitingRuns` for `runs` when a worker claims it. In the other order, it could be missed in both.
  const run = await findRun(deps, run_id, env_id)
  return run ? { stream_id: run.stream_id } : findCall(deps, run_id, env_id)
}
