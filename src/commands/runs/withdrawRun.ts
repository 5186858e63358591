import { clock } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Fails a requested run that no worker has claimed, so that it does not start after its caller has sent the request again.
 * Resolves with false if a worker has claimed it, or if it has ended.
 */
export const withdrawRun = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { run_id, stream_id }: { readonly run_id: string; readonly stream_id: string },
  cause: EnvCause,
): Promise<boolean> => {
  const error = { code: 'unavailable', message: 'No worker began the run in time' }
  const { events } = await aggregates.streams.handle(
    streamOf.stream(stream_id),
    { type: 'AbandonRun', run_id, was: 'requested', error, now: clock.iso() },
    cause,
  )
  return events.length > 0
}
