import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import type { RunError, RunInput, RunPlan } from '../events/run.ts'
import { type Payload, payloadFields } from '../events/payload.ts'
import { isDerived, timeOf } from '../ids.ts'
import type { Decider, Folded } from './decider.ts'
import type { Immutable } from './immutable.ts'
import {
  decideRun,
  evolveRuns,
  type OpenRuns,
  type RunCommand,
  type RunEvent,
  runningRun,
  started,
} from './run.ts'

/** The open work of one svc stream. Ended runs are dropped, so the state of a long stream stays small. */
export interface StreamState {
  /** Null while the stream does not exist. */
  env_id: string | null
  /** Published events that are not dispatched yet; the ids of their runs that were claimed already, if there are any. */
  readonly undispatched: Map<string, Set<string> | null>
  readonly runs: OpenRuns
  /** The newest events that were published under an `Idempotency-Key`: their revisions by id. */
  readonly keyed: Map<string, number>
  /** The events that `keyed` no longer contains: the newest time of their ids, and the revision of the last one. */
  forgotten: { readonly time: number; readonly revision: number } | null
}

/** The runs that `EventHandled` names: their ids, with the claims of the last part, are less than the 1 MiB of an append. */
const MOST_NAMED = 10_000

/** Most repeats are found among these: a request is repeated soon, after a crash or when another node took over. */
const KEYED = 64

/**
 * The state no longer contains whether the event was published. The caller looks it up among the facts up to `revision`
 * and repeats the command with `absent_to`.
 */
export class PossiblyPublished extends AppError {
  readonly revision: number

  constructor(event_id: string, revision: number) {
    super('conflict', `Event ${event_id} may have been published by an earlier attempt of its request`)
    this.revision = revision
  }
}

/** A stream is idle when nothing of it is running, due or undispatched. */
export const isIdle = ({ undispatched, runs }: Immutable<StreamState>): boolean =>
  undispatched.size === 0 && runs.size === 0

export type StreamCommand =
  | {
      readonly type: 'PublishEvent'
      readonly stream_id: string
      readonly env_id: string
      readonly event_id: string
      readonly event_type: string
      readonly data: Payload
      readonly source: string
      readonly depth?: number | undefined
      readonly only_projects?: readonly string[] | undefined
      /** The run that publishes it, which must be running. */
      readonly by_run_id?: string | undefined
      /** True: the stream is created if it is absent. False: it must exist in the environment. */
      readonly create: boolean
      /** The facts up to this revision are known not to contain the event. */
      readonly absent_to?: number | undefined
      /** A worker that claims the runs of its handlers in the same append. */
      readonly claim?: { readonly plans: readonly RunPlan[]; readonly worker_id: string }
      readonly now: string
    }
  | {
      readonly type: 'DispatchEvent'
      readonly stream_id: string
      readonly event_id: string
      /** The runs of its handlers, which this worker claims together, except those that were claimed already. */
      readonly plans: readonly RunPlan[]
      /** The projects whose handlers are not known, and why. */
      readonly unread?: { readonly unread_projects: readonly string[]; readonly error: RunError } | undefined
      readonly worker_id: string
      readonly now: string
    }
  | {
      /** Claims a part of the runs of an event. `DispatchEvent` claims the last part. */
      readonly type: 'ClaimPart'
      readonly event_id: string
      readonly plans: readonly RunPlan[]
      readonly worker_id: string
      readonly now: string
    }
  | {
      readonly type: 'RequestRun'
      readonly env_id: string
      readonly plan: RunPlan
      readonly input?: RunInput
      readonly create: boolean
      /** A worker that claims the run in the same append. */
      readonly claim?: { readonly worker_id: string; readonly now: string }
    }
  | {
      /** The event cannot be dispatched, or its call was cancelled. */
      readonly type: 'AbandonEvent'
      readonly stream_id: string
      readonly event_id: string
      readonly error: RunError
      /** The run that does not begin, if a caller cancelled the call. */
      readonly cancelled_run_id?: string
    }
  | RunCommand

type DispatchEvent = Extract<StreamCommand, { type: 'DispatchEvent' }>

export type StreamEvent = EventOf<'StreamCreated' | 'EventPublished' | 'EventHandled'> | RunEvent

/** The rules of an svc stream: its events, their runs and the endings of these (I3, I4). */
export const stream: Decider<StreamState, StreamCommand, StreamEvent> = {
  initial: () => ({
    env_id: null,
    undispatched: new Map(),
    runs: new Map(),
    keyed: new Map(),
    forgotten: null,
  }),

  idOf(event) {
    switch (event.type) {
      case 'StreamCreated':
        return event.stream_id
      case 'EventPublished':
        return event.event_id
      default: // a claim needs a new id: with a known one, the store would accept a second claim as a repeat
        return undefined
    }
  },

  decide(command, state) {
    switch (command.type) {
      case 'PublishEvent': {
        const { event_id, stream_id, event_type, data, source, depth, only_projects, now } = command
        if (state.keyed.has(event_id)) return [] // a repeated request publishes once
        demandAbsent(state, command)
        if (command.by_run_id !== undefined) runningRun(state.runs, command.by_run_id)
        return [
          ...opening(state, stream_id, command.env_id, command.create),
          {
            type: 'EventPublished',
            event_id,
            stream_id,
            event_type,
            ...payloadFields('event_data', data),
            source,
            ...(depth !== undefined && { depth }),
            ...(only_projects && { only_projects: [...only_projects] }),
            event_time: now,
          },
          ...(command.claim ? handled(command, command.claim, now) : []),
        ]
      }

      case 'DispatchEvent': {
        // I3: a redelivery finds the runs claimed
        const claimed = state.undispatched.get(command.event_id)
        if (claimed === undefined) return []
        return handled(command, { ...command, plans: without(claimed, command.plans) }, command.now, claimed)
      }

      case 'ClaimPart': {
        const claimed = state.undispatched.get(command.event_id)
        if (claimed === undefined) return []
        return without(claimed, command.plans).map((plan) => started(plan, command.worker_id, command.now))
      }

      case 'AbandonEvent': {
        const { type: _, event_id, stream_id, ...why } = command
        const claimed = state.undispatched.get(event_id)
        if (claimed === undefined) return []
        return [{ ...handledBy({ event_id, stream_id }, [...(claimed ?? [])]), ...why }]
      }

      case 'RequestRun':
        if (state.runs.has(command.plan.run_id)) return []
        if (command.create && state.env_id !== null) return [] // a tick fires once, although several nodes have its alarm
        if (command.plan.parent_run_id !== undefined) runningRun(state.runs, command.plan.parent_run_id)
        return [
          ...opening(state, command.plan.stream_id, command.env_id, command.create),
          { type: 'RunRequested', ...command.plan, ...(command.input && { input: command.input }) },
          ...(command.claim ? [started(command.plan, command.claim.worker_id, command.claim.now)] : []),
        ]

      default:
        return decideRun(command, state.runs)
    }
  },

  evolve(state, { event, revision, metadata }: Folded<StreamEvent>) {
    state.env_id ??= metadata.env_id ?? null // from any fact, because the first ones may have expired
    switch (event.type) {
      case 'StreamCreated':
        break
      case 'EventPublished':
        state.undispatched.set(event.event_id, null)
        if (isDerived(event.event_id)) remember(state, event.event_id, revision)
        break
      case 'EventHandled':
        state.undispatched.delete(event.event_id)
        break
      case 'RunStarted':
        claimedPart(state.undispatched, event)
        evolveRuns(state.runs, event, revision)
        break
      default:
        evolveRuns(state.runs, event, revision)
    }
    return state
  },

  copyOf: ({ undispatched, runs, keyed, ...rest }) => ({
    ...rest,
    undispatched: new Map([...undispatched].map(([id, claimed]) => [id, claimed && new Set(claimed)])),
    runs: new Map(runs),
    keyed: new Map(keyed),
  }),
}

/**
 * Returns the fact if it is the first of its stream after `StreamCreated`. Nothing else is open in the stream then, so
 * the caller need not read it.
 */
export const openingOf = (fact: Folded): Folded | undefined => (fact.revision === 1 ? fact : undefined)

/** I3: refuses to publish an event that may be in the stream already. A fresh id is newer than all that were forgotten. */
const demandAbsent = (
  { forgotten }: StreamState,
  { event_id, absent_to = -1 }: Extract<StreamCommand, { type: 'PublishEvent' }>,
): void => {
  if (!forgotten || !isDerived(event_id) || timeOf(event_id) > forgotten.time) return
  if (absent_to < forgotten.revision) throw new PossiblyPublished(event_id, forgotten.revision)
}

const remember = (state: StreamState, event_id: string, revision: number): void => {
  state.keyed.set(event_id, revision)
  if (state.keyed.size <= KEYED) return
  const [oldest] = state.keyed
  if (!oldest) return
  const [id, at] = oldest
  state.keyed.delete(id)
  state.forgotten = { time: Math.max(state.forgotten?.time ?? 0, timeOf(id)), revision: at }
}

/**
 * Throws what `PublishEvent` is refused with, before its data is stored. An event that may be a repeat is accepted after
 * the end of its run.
 */
export const demandOpen = (
  state: Immutable<StreamState>,
  {
    stream_id,
    env_id,
    event_id,
    by_run_id,
    create,
  }: Pick<
    Extract<StreamCommand, { type: 'PublishEvent' }>,
    'stream_id' | 'env_id' | 'event_id' | 'by_run_id' | 'create'
  >,
): void => {
  opening(state, stream_id, env_id, create)
  if (by_run_id !== undefined && !isDerived(event_id)) runningRun(state.runs, by_run_id)
}

/** Returns `StreamCreated` if the stream is to be created. A stream of another environment does not exist (I7). */
const opening = (
  state: Pick<StreamState, 'env_id'>,
  stream_id: string,
  env_id: string,
  create: boolean,
): StreamEvent[] => {
  if (state.env_id === env_id) return []
  if (state.env_id === null && create) return [{ type: 'StreamCreated', stream_id }]
  throw new AppError('not_found', `No stream ${stream_id}`)
}

/** Returns the facts that dispatch an event and claim its runs for a worker. `claimed`: the ids of those claimed before. */
const handled = (
  { event_id, stream_id }: { event_id: string; stream_id: string },
  { plans, worker_id, unread }: Pick<DispatchEvent, 'plans' | 'worker_id' | 'unread'>,
  now: string,
  claimed: Iterable<string> | null = null,
): StreamEvent[] => [
  {
    ...handledBy({ event_id, stream_id }, [...(claimed ?? []), ...plans.map(runIdOf)]),
    ...(unread && { error: unread.error, unread_projects: [...unread.unread_projects] }),
  },
  ...plans.map((plan) => started(plan, worker_id, now)),
]

/** Returns the fact that an event started these runs. */
const handledBy = (
  { event_id, stream_id }: { event_id: string; stream_id: string },
  run_ids: readonly string[],
): EventOf<'EventHandled'> => ({
  type: 'EventHandled',
  event_id,
  stream_id,
  run_ids: run_ids.slice(0, MOST_NAMED),
  ...(run_ids.length > MOST_NAMED && { runs: run_ids.length }),
})

const runIdOf = ({ run_id }: RunPlan): string => run_id

const without = (claimed: ReadonlySet<string> | null, plans: readonly RunPlan[]): readonly RunPlan[] =>
  claimed ? plans.filter(({ run_id }) => !claimed.has(run_id)) : plans

/** Notes a run that was claimed before its event was dispatched. A retry is no run of the event itself. */
const claimedPart = (
  undispatched: StreamState['undispatched'],
  { event_id, run_id, attempt }: EventOf<'RunStarted'>,
): void => {
  const claimed = event_id !== undefined && attempt === 1 ? undispatched.get(event_id) : undefined
  if (event_id === undefined || claimed === undefined) return
  if (claimed) claimed.add(run_id)
  else undispatched.set(event_id, new Set([run_id]))
}
