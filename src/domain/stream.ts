import { isoOf } from '../clock.ts'
import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import type { RunError, RunInput, RunPlan } from '../events/run.ts'
import { type Payload, payloadFields } from '../events/payload.ts'
import { derivedIdBeside, isDerived } from '../ids.ts'
import { type Decider, type Folded, foreign } from './decider.ts'
import type { Immutable } from './immutable.ts'

/** A run that has not ended: requested, claimed by a worker, or failed and waiting for its retry. */
export type OpenRun =
  | { readonly status: 'requested'; readonly plan: RunPlan; readonly requestedRevision: number }
  | {
      readonly status: 'running'
      readonly plan: RunPlan
      readonly startedRevision: number
      readonly workerId: string
    }
  | {
      readonly status: 'pending_retry'
      readonly plan: RunPlan
      readonly startedRevision: number
      readonly retryAt: string
    }

/** The open work of one svc stream. Ended runs are dropped, so the state of a long stream stays small. */
export interface StreamState {
  /** Null while the stream does not exist. */
  env_id: string | null
  /** Published events that are not dispatched yet. */
  readonly undispatched: Set<string>
  readonly runs: Map<string, OpenRun>
  /** The newest events that were published under an `Idempotency-Key`. */
  keyed: readonly string[]
}

/** Few are enough, because a request is repeated soon: after a crash, or when another node took over. */
const KEYED = 64

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
      /** True: the stream is created if it is absent. False: it must exist in the environment. */
      readonly create: boolean
      /** A worker that claims the runs of its handlers in the same append. */
      readonly claim?: { readonly plans: readonly RunPlan[]; readonly worker_id: string }
      readonly now: string
    }
  | {
      readonly type: 'DispatchEvent'
      readonly stream_id: string
      readonly event_id: string
      /** The runs of its handlers, which this worker claims together. */
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
      /** The event cannot be dispatched. */
      readonly type: 'AbandonEvent'
      readonly stream_id: string
      readonly event_id: string
      readonly error: RunError
    }
  | {
      /** The requested run cannot be claimed. */
      readonly type: 'AbandonRun'
      readonly run_id: string
      readonly error: RunError
      readonly now: string
    }
  | { readonly type: 'ClaimRun'; readonly run_id: string; readonly worker_id: string; readonly now: string }
  | {
      readonly type: 'EmitData'
      readonly run_id: string
      readonly data_type: string
      readonly payload: Payload
    }
  | { readonly type: 'SucceedRun'; readonly run_id: string; readonly result: Payload; readonly now: string }
  | {
      readonly type: 'FailRun'
      readonly run_id: string
      readonly error: RunError
      /** The run ends only if it is claimed by this worker. */
      readonly worker_id: string
      readonly now: string
      /** `now` in milliseconds since 1970, for the time of the retry. */
      readonly nowMs: number
    }
  | { readonly type: 'CancelRun'; readonly run_id: string; readonly now: string }
  | { readonly type: 'RetryRun'; readonly run_id: string; readonly retry_run_id: string }

export type StreamEvent = EventOf<
  | 'StreamCreated'
  | 'EventPublished'
  | 'EventHandled'
  | 'StreamDataEmitted'
  | 'RunRequested'
  | 'RunStarted'
  | 'RunSucceeded'
  | 'RunFailed'
  | 'RunRetried'
  | 'RunCancelled'
>

/** The rules of an svc stream: its events, their runs and the endings of these (I3, I4). */
export const stream: Decider<StreamState, StreamCommand, StreamEvent> = {
  initial: () => ({ env_id: null, undispatched: new Set(), runs: new Map(), keyed: [] }),

  idOf(event) {
    switch (event.type) {
      case 'StreamCreated':
        return event.stream_id
      case 'EventPublished':
        return event.event_id
      case 'RunStarted': // two workers need two ids: with one id, the store would accept both claims as one append
        return derivedIdBeside(event.run_id, event.worker_id)
      default:
        return undefined
    }
  },

  decide(command, state) {
    switch (command.type) {
      case 'PublishEvent': {
        const { event_id, stream_id, event_type, data, source, now } = command
        if (state.keyed.includes(event_id)) return [] // a repeated request publishes once
        return [
          ...opening(state, stream_id, command.env_id, command.create),
          {
            type: 'EventPublished',
            event_id,
            stream_id,
            event_type,
            ...payloadFields('event_data', data),
            source,
            event_time: now,
          },
          ...(command.claim ? handled(command, command.claim.plans, command.claim.worker_id, now) : []),
        ]
      }

      case 'DispatchEvent': // I3: the first append claims all runs; a redelivery finds them claimed
        if (!state.undispatched.has(command.event_id)) return []
        return handled(command, command.plans, command.worker_id, command.now)

      case 'AbandonEvent': {
        const { event_id, stream_id, error } = command
        if (!state.undispatched.has(event_id)) return []
        return [{ type: 'EventHandled', event_id, stream_id, run_ids: [], error }]
      }

      case 'AbandonRun': {
        const run = state.runs.get(command.run_id)
        if (run?.status !== 'requested') return []
        return [{ type: 'RunFailed', ...ending(run, command.now), error: command.error }]
      }

      case 'RequestRun':
        if (state.runs.has(command.plan.run_id)) return []
        if (command.create && state.env_id !== null) return [] // a tick fires once, although several nodes have its alarm
        return [
          ...opening(state, command.plan.stream_id, command.env_id, command.create),
          { type: 'RunRequested', ...command.plan, ...(command.input && { input: command.input }) },
          ...(command.claim ? [started(command.plan, command.claim.worker_id, command.claim.now)] : []),
        ]

      case 'ClaimRun': {
        const run = state.runs.get(command.run_id)
        if (run?.status !== 'requested') return []
        const input_at = run.plan.input_at ?? {
          stream_id: run.plan.stream_id,
          revision: run.requestedRevision,
        }
        return [started({ ...run.plan, input_at }, command.worker_id, command.now)]
      }

      case 'EmitData': {
        const run = state.runs.get(command.run_id)
        if (run?.status !== 'running') throw new AppError('conflict', `Run ${command.run_id} is not running`)
        const { data_type, payload } = command
        return [
          {
            type: 'StreamDataEmitted',
            run_id: command.run_id,
            stream_id: run.plan.stream_id,
            data_type,
            ...payloadFields('payload', payload),
          },
        ]
      }

      case 'SucceedRun': {
        const run = state.runs.get(command.run_id)
        if (run?.status !== 'running') return [] // I4
        return [
          {
            type: 'RunSucceeded',
            ...ending(run, command.now),
            ...payloadFields('result', command.result),
          },
        ]
      }

      case 'FailRun': {
        const run = state.runs.get(command.run_id)
        if (run?.status !== 'running' || run.workerId !== command.worker_id) return [] // I4
        const { retry, attempt } = run.plan
        const retries = retry !== undefined && attempt <= retry.attempts
        return [
          {
            type: 'RunFailed',
            ...ending(run, command.now),
            error: command.error,
            ...(retries && { retry_at: isoOf(command.nowMs + retry.delay) }),
          },
        ]
      }

      case 'CancelRun': {
        const run = state.runs.get(command.run_id)
        if (!run) return [] // I4
        return [{ type: 'RunCancelled', ...ending(run, command.now), was: run.status }]
      }

      case 'RetryRun': {
        const run = state.runs.get(command.run_id)
        if (run?.status !== 'pending_retry') return []
        const { plan } = run
        const retry: RunPlan = {
          ...plan,
          run_id: command.retry_run_id,
          attempt: plan.attempt + 1,
          origin_run_id: plan.origin_run_id ?? plan.run_id,
        }
        return [
          { type: 'RunRetried', run_id: plan.run_id, stream_id: plan.stream_id, retry_run_id: retry.run_id },
          { type: 'RunRequested', ...retry },
        ]
      }

      default:
        return command satisfies never
    }
  },

  evolve(state, { event, revision, metadata }: Folded<StreamEvent>) {
    state.env_id ??= metadata.env_id ?? null // from any fact, because the first ones may have expired
    switch (event.type) {
      case 'StreamCreated':
      case 'StreamDataEmitted':
        break
      case 'EventPublished':
        state.undispatched.add(event.event_id)
        if (isDerived(event.event_id)) state.keyed = [...state.keyed.slice(1 - KEYED), event.event_id]
        break
      case 'EventHandled':
        state.undispatched.delete(event.event_id)
        break
      case 'RunRequested': {
        const { type: _, input: __, ...plan } = event
        state.runs.set(event.run_id, { status: 'requested', plan, requestedRevision: revision })
        break
      }
      case 'RunStarted': {
        const { type: _, worker_id, start_time: __, ...plan } = event
        state.runs.set(event.run_id, {
          status: 'running',
          plan,
          startedRevision: revision,
          workerId: worker_id,
        })
        break
      }
      case 'RunFailed': {
        const run = state.runs.get(event.run_id)
        if (event.retry_at === undefined || run?.status !== 'running') state.runs.delete(event.run_id)
        else {
          const { plan, startedRevision } = run
          state.runs.set(event.run_id, {
            status: 'pending_retry',
            plan,
            startedRevision,
            retryAt: event.retry_at,
          })
        }
        break
      }
      case 'RunSucceeded':
      case 'RunCancelled':
      case 'RunRetried':
        state.runs.delete(event.run_id)
        break
      default:
        foreign(event)
    }
    return state
  },
}

/**
 * Returns the fact if it is the first of its stream after `StreamCreated`. Nothing else is open in the stream then, so
 * the caller need not read it.
 */
export const openingOf = (fact: Folded): Folded | undefined => (fact.revision === 1 ? fact : undefined)

/** Returns `StreamCreated` if the stream is to be created. A stream of another environment does not exist (I7). */
const opening = (state: StreamState, stream_id: string, env_id: string, create: boolean): StreamEvent[] => {
  if (state.env_id === env_id) return []
  if (state.env_id === null && create) return [{ type: 'StreamCreated', stream_id }]
  throw new AppError('not_found', `No stream ${stream_id}`)
}

/** Returns the facts that dispatch an event and claim its runs for a worker. */
const handled = (
  { event_id, stream_id }: { event_id: string; stream_id: string },
  plans: readonly RunPlan[],
  worker_id: string,
  now: string,
): StreamEvent[] => [
  { type: 'EventHandled', event_id, stream_id, run_ids: plans.map(({ run_id }) => run_id) },
  ...plans.map((plan) => started(plan, worker_id, now)),
]

const started = (plan: RunPlan, worker_id: string, now: string): StreamEvent => ({
  type: 'RunStarted',
  ...plan,
  worker_id,
  start_time: now,
})

const ending = (run: OpenRun, now: string) => ({
  run_id: run.plan.run_id,
  stream_id: run.plan.stream_id,
  run_type: run.plan.run_type,
  started_revision: run.status === 'requested' ? null : run.startedRevision,
  stop_time: now,
})
