import { AppError } from '../../errors.ts'
import type { DomainEvent, EventOf } from '../../events/index.ts'
import type { Deployed } from '../../projections/wiring.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { demandReadable } from '../projects/demandReadable.ts'
import { projectFor } from '../projects/projectFor.ts'
import { awaitEnding, type Ending } from './awaitEnding.ts'
import { CANCELLED } from './cancelRun.ts'
import { noFunction } from './functionFor.ts'
import { publishCall, type PublishedCall } from './publishCall.ts'

type Deps = Parameters<typeof publishCall>[0] & Pick<CommandDeps, 'store' | 'views' | 'stopping'>

export interface CalledRun {
  readonly run_id: string
  readonly event_id: string
  readonly stream_id: string
  /**
   * The end of the run, or of the last of its retries; `EventHandled` if it was cancelled before it began; null if the time was
   * over first. The run then continues.
   */
  readonly ending: Ending | EventOf<'EventHandled'> | null
}

interface FunctionCall {
  readonly project: string
  readonly ref: string
  readonly args: readonly unknown[]
}

interface Waiting {
  readonly waitMs: number
  readonly gone: AbortSignal
  /** Is called when the arguments are stored. The wait that follows does not keep them. */
  readonly onStored: () => void
}

/**
 * Starts a background run of a deployed function of a project and waits for its end. Rejects with `not_found`, also if the
 * function is no longer deployed when the run could begin, or with `quota_exceeded`.
 */
export const callAndWait = (
  deps: Deps,
  call: FunctionCall,
  caller: Caller,
  waiting: Waiting,
): Promise<CalledRun> => endOf(deps, store(deps, call, caller), waiting)

/** An own function, because a function that waits keeps its arguments, and those of the call are not needed any more. */
const endOf = async (
  deps: Deps,
  stored: Promise<PublishedCall>,
  { waitMs, gone, onStored }: Waiting,
): Promise<CalledRun> => {
  const { revision: after, ...ids } = await stored
  onStored()
  if (waitMs === 0) return { ...ids, ending: null }
  const signal = AbortSignal.any([AbortSignal.timeout(waitMs), deps.stopping, gone])
  const ending = await awaitEnding(deps, { ...ids, after }, { signal, isOver: isUnbegun(ids) })
  if (ending?.type === 'EventHandled' && ending.error?.code !== CANCELLED.code) throw unbegun(ids, ending)
  return { ...ids, ending }
}

/** Whether the event was handled without the run, so that it never begins. */
const isUnbegun =
  ({ run_id, event_id }: Pick<CalledRun, 'run_id' | 'event_id'>) =>
  (event: DomainEvent): event is EventOf<'EventHandled'> =>
    event.type === 'EventHandled' && event.event_id === event_id && !event.run_ids.includes(run_id)

const unbegun = (
  { run_id }: Pick<CalledRun, 'run_id'>,
  { error }: Pick<EventOf<'EventHandled'>, 'error'>,
): AppError =>
  new AppError(
    'not_found',
    `Run ${run_id} did not begin: ${error?.message ?? 'its function is not deployed any more'}`,
  )

/** Publishes the event that starts the run. */
const store = (deps: Deps, { project, ref, args }: FunctionCall, caller: Caller): Promise<PublishedCall> =>
  publishCall(
    deps,
    { ref, args, source: 'api' },
    () => find(deps, { project, ref }, caller.cause.env_id),
    caller,
  )

const find = async (
  { views }: Pick<Deps, 'views'>,
  { project: named, ref }: Pick<FunctionCall, 'project' | 'ref'>,
  env_id: string,
): Promise<Deployed> => {
  await views.settled('builds', 'projects')
  const found = projectFor(views.directory, env_id, named)
  const { project_id, name } = found
  demandReadable(found, found.deployed)
  const deployed = views.directory.functionAt(env_id, ref, project_id)
  if (deployed) return deployed
  throw noFunction(views.directory, { ref, project_id, place: `the deployed build of ${name}` })
}
