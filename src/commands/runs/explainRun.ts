import type { Actor } from '../../events/actor.ts'
import { CALL, REPLAY } from '../../events/eventType.ts'
import { streamOf } from '../../events/streams.ts'
import { type EventDoc, senderOf } from '../../projections/events.ts'
import type { RunDoc } from '../../projections/runs.ts'
import type { CommandDeps } from '../deps.ts'
import { readFact } from '../streams/readFact.ts'

/** Why a run started, and how it ended: sentences for people and models. */
export interface Explanation {
  readonly why: readonly string[]
  readonly outcome: string
  /** The event that started the run, if it is stored and there is one. */
  readonly event: EventDoc | null
}

type Deps = Pick<CommandDeps, 'store' | 'views'>

/**
 * Explains a run from what is stored. `views` must contain the run. `mayReadEvents`: the caller may see its event
 * and the credential that requested it.
 */
export const explainRun = async (
  deps: Deps,
  run: RunDoc,
  { mayReadEvents }: { readonly mayReadEvents: boolean },
): Promise<Explanation> => {
  const event = run.event_id === null || !mayReadEvents ? null : await deps.views.events.get(run.event_id)
  const actor = mayReadEvents ? await actorFor(deps, run) : {}
  return {
    why: [
      `${nameOf(run)} ${run.worker_id === '' ? 'waited' : 'ran'} as run ${run.run_id}, attempt ${run.attempt}, on build ${run.build_id} of the project ${run.project_name}.`,
      triggerOf(run, event, actor),
      ...(event ? senderText(event) : []),
      ...(run.replay_of === null ? [] : [`It replays the run ${run.replay_of} with the same input.`]),
      ...(run.origin_run_id === null
        ? []
        : [`It is a retry: the first attempt was the run ${run.origin_run_id}.`]),
    ],
    outcome: outcomeOf(run),
    event,
  }
}

const nameOf = ({ fn }: RunDoc): string => fn ?? 'Evaluated code'

const triggerOf = (run: RunDoc, event: EventDoc | null, { actor, actor_type }: Actor): string => {
  const by = actor === undefined || actor_type === undefined ? '' : ` by the ${actor_type} ${actor}`
  const { run_type, parent_run_id, event_id, requested_at } = run
  if (parent_run_id !== null) return `The run ${parent_run_id} called it and waited for it.`
  if (run.replay_of !== null) return `The replay was requested at ${requested_at}${by}.`
  switch (run_type) {
    case 'event': {
      const what = event ? `The event ${event.event_type} (${event_id})` : `The event ${event_id}`
      return `${what} was published${by}; the function handles events of this type.`
    }
    case 'schedule':
      if (actor_type === 'system') return `Its schedule was due at ${requested_at}.`
      return by === ''
        ? `Its schedule started it, requested at ${requested_at}.` // a tick or a caller
        : `Its schedule was started by hand, requested at ${requested_at}${by}.`
    case 'eval':
    case 'repl':
      return `The code was sent at ${requested_at}${by}.`
    case 'call':
    case 'run':
      return event_id === null
        ? `It was called at ${requested_at}${by}: by its webhook, or as a tool over MCP.`
        : `It was called as a background run${by}, by the event ${event?.event_type ?? CALL} (${event_id}).`
    default:
      return run_type satisfies never
  }
}

const senderText = (event: EventDoc): string[] => {
  const sender = senderOf(event)
  if (sender !== null) return [`The run ${sender} sent that event.`]
  return event.event_type === REPLAY ? ['The event is the request to replay a run.'] : []
}

/** The actor that requested the run; empty if it is not stored. */
const actorFor = async ({ store }: Deps, { input_at, replay_of }: RunDoc): Promise<Actor> => {
  if (!input_at || replay_of !== null) return {} // the input of a replay belongs to the first run
  const fact = await readFact(store, streamOf.stream(input_at.stream_id), input_at.revision)
  return fact?.metadata ?? {}
}

const outcomeOf = ({ status, error, start_time, stop_time, retry_at, retried_by }: RunDoc): string => {
  const where =
    error?.location && ` at ${error.location.file}:${error.location.line}:${error.location.column}`
  const failure = error ? `It failed with ${error.code}${where ?? ''}: ${error.message}` : 'It failed'
  switch (status) {
    case 'running':
      return `It is running since ${start_time}.`
    case 'succeeded':
      return `It succeeded at ${stop_time}.`
    case 'cancelled':
      return `It was cancelled at ${stop_time}.`
    case 'pending_retry':
      return `${failure}. Its retry is due at ${retry_at}.`
    case 'failed':
      return retried_by === null ? `${failure}.` : `${failure}. The run ${retried_by} is its retry.`
    default:
      return status satisfies never
  }
}
