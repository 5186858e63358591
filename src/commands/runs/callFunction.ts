import { CALL } from '../../events/eventType.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import type { RunArguments } from './runFunction.ts'
import { storeEvent } from '../events/publishEvent.ts'
import { functionFor } from './functionFor.ts'
import { runIdOf } from '../events/planRuns.ts'

type Deps = Parameters<typeof storeEvent>[0] & Pick<CommandDeps, 'views'>

/**
 * Starts a background run of a function by its reference `ns/var`, for a run of `project_id` (SDK `call`; DESIGN.md, A
 * build). Resolves when the `svc:call` event is durable; the run's id derives from it. Rejects with `not_found` or
 * `quota_exceeded`.
 */
export const callFunction = async (
  deps: Deps,
  {
    ref,
    args,
    project_id,
    ...event
  }: {
    ref: string
    args: RunArguments
    project_id: string
    stream_id: string
    source: string
    depth?: number | undefined
    by_run_id?: string | undefined
  },
  caller: Caller,
): Promise<{ event_id: string; run_id: string }> => {
  const deployed = functionFor(deps.views.directory, caller.cause.env_id, ref, project_id)
  const event_data = { fn: ref, args, project: deployed.project.project_id }
  const {
    event: { event_id },
  } = await storeEvent(deps, { ...event, event_type: CALL, event_data }, caller)
  return { event_id, run_id: runIdOf(event_id, deployed) }
}
