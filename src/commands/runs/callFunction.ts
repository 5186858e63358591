import type { Caller, CommandDeps } from '../deps.ts'
import { type Admit, functionFor } from './functionFor.ts'
import { publishCall } from './publishCall.ts'
import type { RunArguments } from './runFunction.ts'

type Deps = Parameters<typeof publishCall>[0] & Pick<CommandDeps, 'views'>

/**
 * Starts a background run of a function by its reference `ns/var`, for a run of `project_id` (SDK `call`; DESIGN.md, A
 * build). Resolves when the `svc:call` event is durable; the run's id derives from it. Rejects with `not_found` or
 * `quota_exceeded`, or as `admit` does.
 */
export const callFunction = async (
  deps: Deps,
  {
    project_id,
    admit,
    ...call
  }: {
    ref: string
    args: RunArguments
    project_id: string
    admit?: Admit | undefined
    stream_id: string
    source: string
    depth?: number | undefined
    by_run_id?: string | undefined
  },
  caller: Caller,
): Promise<{ event_id: string; run_id: string }> => {
  const find = () => functionFor(deps.views.directory, caller.cause.env_id, call.ref, project_id, admit)
  const { event_id, run_id } = await publishCall(deps, call, find, caller)
  return { event_id, run_id }
}
