import { clock } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { callIdsOf, type ToolRequest } from './callIds.ts'

/** Cancels the run of a call of the same credential. A no-op if the call is unknown or has ended (I4). */
export const cancelTool = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  request: ToolRequest,
  cause: EnvCause,
): Promise<void> => {
  const ids = callIdsOf(request)
  const command = { type: 'CancelRun', run_id: ids('run'), now: clock.iso() } as const
  await aggregates.streams.handle(streamOf.stream(ids('stream')), command, cause)
}
