import { clock } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { locateRun } from './locateRun.ts'

/** The error of a call whose run did not begin. */
export const CANCELLED = { code: 'cancelled', message: 'The call was cancelled before its run began' }

/**
 * Cancels a run of the environment (SPEC.md, Run status), also one that only waits. If the run has failed
 * or was lost, the open attempt that follows it is cancelled. A no-op for an unknown or ended run (I4, I7). Throws `unavailable` if the read
 * models are too far behind the log.
 */
export const cancelRun = async (
  deps: Pick<CommandDeps, 'store' | 'views' | 'aggregates' | 'payloads'>,
  run_id: string,
  cause: EnvCause,
): Promise<void> => {
  const { streams } = deps.aggregates
  const { env_id } = cause
  const place = await locateRun(deps, run_id, env_id)
  if (!place) return
  const { stream_id, event_id } = place
  const stream = streamOf.stream(stream_id)
  if (event_id !== undefined) {
    const call = { stream_id, event_id, cancelled_run_id: run_id }
    await streams.handle(stream, { type: 'AbandonEvent', ...call, error: CANCELLED }, cause)
  }
  // If a worker dispatched the call meanwhile, its run is cancelled.
  await streams.handle(stream, { type: 'CancelRun', run_id, now: clock.iso() }, cause)
}
