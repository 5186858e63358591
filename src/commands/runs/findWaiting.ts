import type { CommandDeps } from '../deps.ts'
import { findCall } from './findCall.ts'

/** A run that no worker has claimed. */
export interface WaitingRun {
  readonly stream_id: string
  /** The `svc:call` event that starts the run, if no worker has handled it. */
  readonly event_id?: string
}

/**
 * Finds a run of the environment that only waits: it was requested, or `call` returned its id. Null for any other (I7). The
 * read models must contain everything that the caller knows.
 */
export const findWaiting = async (
  deps: Pick<CommandDeps, 'views' | 'payloads'>,
  run_id: string,
  env_id: string,
): Promise<WaitingRun | null> => {
  const requested = await deps.views.waitingRuns.get(run_id)
  if (requested) return requested.env_id === env_id ? { stream_id: requested.stream_id } : null
  return findCall(deps, run_id, env_id)
}
