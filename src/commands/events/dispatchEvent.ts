import { clock } from '../../clock.ts'
import { openingOf } from '../../domain/stream.ts'
import { actorOf } from '../../events/actor.ts'
import { envIdOf, type Recorded } from '../../events/event.ts'
import type { EventOf } from '../../events/index.ts'
import { payloadOf } from '../../events/payload.ts'
import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import { cancelRun } from '../runs/cancelRun.ts'
import { isControl, REPLAY } from '../../events/eventType.ts'
import type { CommandDeps } from '../deps.ts'
import { findRun } from '../runs/findRun.ts'
import { claimsOf } from '../runs/claimsOf.ts'
import { partsOf, planRuns } from './planRuns.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'views' | 'payloads'>
type Published = Recorded<EventOf<'EventPublished'>>

/**
 * Dispatches a published event: claims the runs of its handlers for a worker, or cancels the run that `svc:cancel`
 * names (I3; SPEC.md, Publishing and handling). Resolves with the claimed runs; null if a worker has dispatched the
 * event. Many runs are claimed in parts; a redelivery after a crash claims the rest. An event deeper than `maxRunDepth`
 * starts no runs.
 */
export const dispatchEvent = async (
  deps: Deps,
  {
    published,
    worker_id,
    maxRunDepth = Infinity,
  }: { published: Published; worker_id: string; maxRunDepth?: number },
): Promise<readonly RunPlan[] | null> => {
  const { aggregates, payloads, views } = deps
  const { event, metadata, revision, cursor } = published
  const { event_id, stream_id } = event
  const env_id = envIdOf(published)
  const { correlation_id, traceparent } = metadata
  // The runs start on behalf of the publisher, also if a worker starts them.
  const cause = { env_id, correlation_id, causation_id: event_id, ...actorOf(metadata) }
  await views.directory.reach(cursor) // every handler that was deployed before the event is known
  const data = isControl(event.event_type)
    ? await payloads.loadLoosely(payloadOf('event_data', event))
    : undefined
  const replayed = event.event_type === REPLAY ? await findRun(deps, runIdIn(data), env_id) : null
  const planned = planRuns(
    event,
    data,
    { env_id, revision, traceparent },
    { directory: views.directory, replayed },
  )
  if (planned.kind === 'cancel') {
    if (await isDispatched(deps, published)) return null // a later attempt of the run is not cancelled
    await cancelRun(deps, planned.run_id, cause)
  }
  const isTooDeep = (event.depth ?? 0) > maxRunDepth // the limit was lowered since the event was published
  const plans = planned.kind === 'start' && !isTooDeep ? planned.plans : []
  const stream = streamOf.stream(stream_id)
  const claim = { event_id, worker_id, now: clock.iso() }
  const at = { opening: openingOf(published), known: revision }
  const parts = partsOf(plans)
  for (const part of parts.slice(0, -1))
    await aggregates.streams.handle(stream, { ...claim, type: 'ClaimPart', plans: part }, cause, at)
  const unread = planned.kind === 'start' && !isTooDeep ? unreadOf(event_id, planned.unread) : undefined
  const last = { ...claim, type: 'DispatchEvent', stream_id, plans: parts.at(-1) ?? [], unread } as const
  const { events } = await aggregates.streams.handle(stream, last, cause, at)
  if (events.length === 0) return null
  if (events.length === 1 + plans.length) return plans
  const claims = await claimsOf(deps, { stream_id, worker_id }) // other parts, also of an earlier delivery
  return claims.filter((plan) => plan.event_id === event_id)
}

/** The event is listed for the operator, who repeats it for these projects when their functions can be read. */
const unreadOf = (event_id: string, unread_projects: readonly string[]) =>
  unread_projects.length === 0
    ? undefined
    : {
        unread_projects,
        error: {
          code: 'internal_server_error',
          message: `Event ${event_id} could not be dispatched to ${unread_projects.length} projects, because the lists of functions of their builds cannot be read`,
        },
      }

/** Whether the event was dispatched before. A node that is behind does not know the event, and answers false. */
const isDispatched = (
  { aggregates }: Pick<Deps, 'aggregates'>,
  { event: { event_id, stream_id }, revision }: Published,
): Promise<boolean> =>
  aggregates.streams.read(
    streamOf.stream(stream_id),
    ({ undispatched }, last) => last >= revision && !undispatched.has(event_id),
  )

const runIdIn = (data: unknown): unknown =>
  typeof data === 'object' && data !== null && 'run_id' in data ? data.run_id : undefined
