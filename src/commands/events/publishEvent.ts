import { clock } from '../../clock.ts'
import { type Reservation, roomAfter } from '../../content/fileQuota.ts'
import { recordedOf } from '../../domain/recorded.ts'
import { demandOpen } from '../../domain/stream.ts'
import { AppError, isAppError, isRefusal } from '../../errors.ts'
import type { Cursor, EnvCause } from '../../events/event.ts'
import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import { isDerived, isId } from '../../ids.ts'
import type { Claimer } from '../../ports/claimer.ts'
import type { Tracer } from '../../ports/tracer.ts'
import { appendOnce } from './appendOnce.ts'
import { checkedControl } from './checkedControl.ts'
import { CANCEL, checkEventType, isControl } from '../../events/eventType.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { Part, PART_RUNS, planRuns } from './planRuns.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'views' | 'payloads' | 'quotas'> & {
  readonly claimer?: Claimer | null
  readonly tracer?: Tracer | null
}

export interface EventToPublish {
  readonly event_type: string
  /** JSON. */
  readonly event_data: unknown
  /** The stream to continue; a new one is created when omitted. */
  readonly stream_id?: string | undefined
  /** `api`, or `run:<run_id>` for an event from a function. */
  readonly source: string
  /** The depth of the runs that the event starts; absent: 0. */
  readonly depth?: number | undefined
  /** It starts handlers of these projects only; absent: of every project of the environment. */
  readonly only_projects?: readonly string[] | undefined
  /** The run that publishes it, which must be running; the event continues its stream. */
  readonly by_run_id?: string | undefined
}

export interface PublishedEvent {
  readonly event: {
    event_id: string
    env_id: string
    stream_id: string
    event_type: string
    event_data: unknown
    event_time: string
    created_at: string
  }
  /** Revision of the event in its stream. */
  readonly revision: number
  /** The number of handlers whose runs its append claimed; absent if a worker plans them later. */
  readonly handlers?: number
  /** The cursor of its append; null if an earlier request published it. */
  readonly cursor: Cursor | null
}

/**
 * Publishes an event (SPEC.md, Publishing and handling). The event is durable when this resolves (I1), and each
 * matching handler of the deployed builds runs once (I3). Rejects with `bad_request`, `not_found`, `quota_exceeded`, or
 * `conflict` when the run that publishes it has ended.
 */
export const publishEvent = async (
  deps: Deps,
  wanted: EventToPublish,
  caller: Caller,
): Promise<PublishedEvent> => {
  const { event_type, stream_id } = wanted
  checkEventType(event_type)
  if (stream_id !== undefined && !isId(stream_id))
    throw new AppError('bad_request', 'stream_id: expected a UUID')
  if (!isControl(event_type)) return storeEvent(deps, wanted, caller)
  const checked = () => checkedControl(deps, { ...wanted, env_id: caller.cause.env_id })
  return storeChecked(deps, wanted, checked, caller)
}

/** Publishes an event that is known to be valid. Rejects with `quota_exceeded`. */
export const storeEvent = (deps: Deps, event: EventToPublish, caller: Caller): Promise<PublishedEvent> =>
  orEarlier(deps, event, caller, () => storeNow(deps, event, caller))

/** Publishes an event with the data of `checked`, whose refusal does not apply to an event that an earlier attempt has published. */
export const storeChecked = (
  deps: Deps,
  event: EventToPublish,
  checked: () => Promise<unknown>,
  caller: Caller,
): Promise<PublishedEvent> =>
  orEarlier(deps, event, caller, async () =>
    storeNow(deps, { ...event, event_data: await checked() }, caller),
  )

/**
 * Publishes an event. If that is refused, but an earlier attempt of the request with its `Idempotency-Key` has published
 * it, resolves with that event: the plan may be full and the function deleted since then. Only a refused request with a key reads more.
 */
const orEarlier = async (
  deps: Deps,
  { stream_id: continued, event_data }: EventToPublish,
  { cause: { env_id }, newId }: Caller,
  publish: () => Promise<PublishedEvent>,
): Promise<PublishedEvent> => {
  try {
    return await publish()
  } catch (error) {
    const event_id = newId('event')
    if (!isRefusal(error) || !isDerived(event_id)) throw error
    const stream = streamOf.stream(continued ?? newId('stream'))
    if (!(await hasEvent(deps, stream, { event_id, env_id }))) throw error
    return publishedBefore(deps, stream, { event_id, env_id, event_data })
  }
}

/** Whether an earlier attempt of a request with an `Idempotency-Key` has published the event. */
const hasEvent = async (
  { aggregates, views }: Pick<Deps, 'aggregates' | 'views'>,
  stream: string,
  { event_id, env_id }: { readonly event_id: string; readonly env_id: string },
): Promise<boolean> => {
  const known = await aggregates.streams.read(stream, ({ env_id: owner, keyed, forgotten }) =>
    owner === env_id ? { isKeyed: keyed.has(event_id), mayBeOld: forgotten !== null } : null,
  )
  if (!known?.mayBeOld || known.isKeyed) return known?.isKeyed ?? false
  await views.settled('events')
  return (await views.events.get(event_id)) !== null
}

const storeNow = async (deps: Deps, event: EventToPublish, caller: Caller): Promise<PublishedEvent> => {
  const room = deps.quotas.dataFor(caller.cause.env_id)
  const store = (cause: EnvCause) => storeWithin(room, deps, event, { ...caller, cause })
  try {
    return await (deps.tracer ? traced(deps.tracer, caller.cause, event, store) : store(caller.cause))
  } finally {
    room.release()
  }
}

/** Stores an event as a span, from which its runs follow. */
const traced = async (
  tracer: Tracer,
  cause: EnvCause,
  { event_type }: EventToPublish,
  store: (cause: EnvCause) => Promise<PublishedEvent>,
): Promise<PublishedEvent> => {
  const attributes = { 'svc.event_type': event_type, 'svc.env_id': cause.env_id }
  const span = tracer.begin('publish', { kind: 'producer', parent: cause.traceparent, attributes })
  try {
    const published = await store({ ...cause, traceparent: span.traceparent })
    const { event_id, stream_id } = published.event
    span.end({ attributes: { 'svc.event_id': event_id, 'svc.stream_id': stream_id } })
    return published
  } catch (error) {
    span.end({ error: isAppError(error) ? error.code : 'internal_server_error' })
    throw error
  }
}

const storeWithin = async (
  room: Reservation,
  deps: Deps,
  { event_type, event_data, source, depth, only_projects, by_run_id, stream_id: continued }: EventToPublish,
  { cause, newId }: Caller,
): Promise<PublishedEvent> => {
  const { env_id } = cause
  if (event_type !== CANCEL) await deps.quotas.checkRun(env_id)
  const stream_id = continued ?? newId('stream')
  const event_id = newId('event')
  const now = clock.iso()
  const create = continued === undefined
  const claimer = deps.claimer ?? null
  const claim =
    create && claimer ? await claimOf(deps, claimer, { event_id, stream_id, event_type }, cause) : null
  const stream = streamOf.stream(stream_id)
  const wanted = { stream_id, env_id, event_id, by_run_id, create }
  // Equal payloads share a blob, so that of a refused event cannot be removed afterwards.
  const checked = create
    ? room
    : roomAfter(() => deps.aggregates.streams.read(stream, (state) => demandOpen(state, wanted)), room)
  const command = {
    type: 'PublishEvent',
    ...wanted,
    event_type,
    data: await deps.payloads.keep(event_data, cause, checked),
    source,
    ...(depth !== undefined && { depth }),
    only_projects,
    ...(claim && { claim }),
    now,
  } as const
  const append = () =>
    isDerived(event_id)
      ? appendOnce(deps, stream, command, cause)
      : deps.aggregates.streams.handle(stream, command, cause, { fresh: create })
  const handled = await (claim && claimer
    ? claimer.claiming(event_id, append, { env_id, runs: claim.plans.length })
    : append())
  if (!handled) return publishedBefore(deps, stream, { event_id, env_id, event_data })
  const carrier = recordedOf(handled, 'EventPublished', { stream, at: now, metadata: cause })
  if (claim) claimer?.execute(claim.plans, carrier, claim.worker_id)
  return {
    event: { event_id, env_id, stream_id, event_type, event_data, event_time: now, created_at: now },
    revision: carrier.revision,
    ...(claim && { handlers: claim.plans.length }),
    cursor: handled.cursor,
  }
}

/** Reads the event that an earlier request with the same `Idempotency-Key` published before its node died. */
const publishedBefore = async (
  { store, aggregates }: Deps,
  stream: string,
  { event_id, env_id, event_data }: { event_id: string; env_id: string; event_data: unknown },
): Promise<PublishedEvent> => {
  const from = await aggregates.streams.read(stream, ({ keyed }) => keyed.get(event_id) ?? 0)
  for await (const { event, revision } of store.read(stream, { from })) {
    if (event.type !== 'EventPublished' || event.event_id !== event_id) continue
    const { stream_id, event_type, event_time } = event
    return {
      event: { event_id, env_id, stream_id, event_type, event_data, event_time, created_at: event_time },
      revision,
      cursor: null,
    }
  }
  throw new AppError('unavailable', `The event store returned ${stream} without event ${event_id}`)
}

/** Revision of an event in a stream that is created for it: `StreamCreated` comes first. */
const FIRST_EVENT_AT = 1

/** The runs that this process's worker claims in the append that publishes the event; null if it has no room. */
const claimOf = async (
  { store, views: { directory } }: Deps,
  claimer: Claimer,
  event: { event_id: string; stream_id: string; event_type: string },
  { env_id, traceparent }: EnvCause,
): Promise<{ plans: readonly RunPlan[]; worker_id: string } | null> => {
  if (isControl(event.event_type)) return null
  await directory.reach(await store.head()) // every handler that was deployed before the event is known
  if (!claimer.hasRoom(env_id)) return null
  const planned = planRuns(event, undefined, { env_id, revision: FIRST_EVENT_AT, traceparent }, { directory })
  if (planned.kind !== 'start' || planned.unread.length > 0 || planned.functions.length > PART_RUNS)
    return null
  const part = new Part(planned.functions.length)
  const isWhole = planned.functions.every((deployed) => part.add(planned.planOf(deployed)))
  return isWhole ? { plans: part.plans, worker_id: claimer.worker_id } : null
}
