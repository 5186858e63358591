import { isoOf } from '../clock.ts'
import { envIdOf, isOf, type Recorded } from '../events/event.ts'
import type { EventOf } from '../events/index.ts'
import type { RunError, RunPlan } from '../events/run.ts'
import { payloadFields, payloadOf } from '../events/payload.ts'
import type { PayloadRef } from '../events/scalars.ts'
import { hasTime, timeOf } from '../ids.ts'
import { BY_TIME, expiredCalls, NOTHING, orderOf, type Projection, withId } from './projection.ts'
import { runDayDoc, runDayId } from './runDays.ts'
import { clearedRunStats, summarizeRuns } from './runStats.ts'

export type RunStatus = 'running' | 'succeeded' | 'failed' | 'cancelled' | 'pending_retry'

/** A run as lists show it (SPEC.md, Run), with further fields for the sagas. */
export type RunDoc = {
  readonly run_id: string
  readonly env_id: string
  readonly stream_id: string
  readonly build_id: string
  readonly run_type: RunPlan['run_type']
  readonly status: RunStatus
  readonly start_time: string
  readonly stop_time: string | null
  readonly origin_run_id: string | null
  readonly event_id: string | null
  readonly result?: unknown
  readonly result_ref?: PayloadRef
  readonly error?: RunError
  readonly project_id: string
  readonly project_name: string
  /** `ns/var`; null for evaluated code. */
  readonly fn: string | null
  readonly attempt: number
  readonly parent_run_id: string | null
  readonly replay_of: string | null
  readonly retry_at: string | null
  /** Empty if no worker ever claimed it. */
  readonly worker_id: string
  /** `worker_id/order` while a worker has the run, else null: recovery finds the runs of dead workers by it. */
  readonly running_on: string | null
  /** The position of the input, for a replay. */
  readonly input_at: RunPlan['input_at'] | null
  readonly order: string
  /** When the run was due, and when its present worker claimed it: before, it waited. */
  readonly requested_at: string
  readonly claimed_at: string
  /** The attempt after this one. */
  readonly retried_by: string | null
  /** The code of the error, and `order` if there is one: the sparse index has failures only. */
  readonly error_code: string | null
  readonly error_order: string | null
  /** `parent_run_id/order` on the child of a run, for its trace; else null. */
  readonly child_of: string | null
  /** `project_id/ns/var/order` on an attempt that a schedule began, by a tick or by hand; else null. */
  readonly of_schedule: string | null
}

/** The runs, and their statistics as summaries. */
export const runs: Projection = {
  name: 'runs',
  version: 6,
  forgetsRemovals: true,
  indexes: [
    { equal: ['env_id'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: ['env_id', 'status'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: ['env_id', 'run_type'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: ['env_id', 'status', 'run_type'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: ['event_id'], sort: 'order' },
    { equal: ['stream_id'], sort: 'order' },
    { equal: ['project_id'], sort: 'order' },
    { equal: ['env_id', 'fn'], sort: 'order' },
    { equal: ['env_id', 'error_code'], sort: 'error_order', sparse: true },
    { equal: [], sort: 'child_of', sparse: true },
    { equal: [], sort: 'of_schedule', sparse: true },
    { equal: [], sort: 'running_on', sparse: true },
    { equal: [], sort: 'retry_at', sparse: true },
    { equal: ['summary_of'], sort: 'summary_key', sparse: true },
    { equal: ['summary_project'], sort: 'summary_key', sparse: true },
  ],
  handles: [
    'RunStarted',
    'RunRequested',
    'RunSucceeded',
    'RunFailed',
    'RunRetried',
    'RunCancelled',
    'EnvPurged',
    'CallsExpired',
    'ProjectDeleted',
    'RunDayCounted',
  ],
  begins: ({ event }) => event.type === 'RunStarted' && !event.reclaimed,
  idsOf({ event }) {
    if (event.type === 'RunRequested' && event.returned_by === undefined) return []
    if (event.type === 'RunDayCounted') return [runDayId(event)]
    return 'run_id' in event ? [event.run_id] : []
  },
  clears: ({ event }) =>
    'run_id' in event
      ? NOTHING
      : [...expiredCalls(event, ({ run_id }: RunDoc) => run_id, mayEnd), ...clearedRunStats(event)],
  summarize: summarizeRuns,

  evolve: (doc, recorded) =>
    recorded.event.type === 'RunDayCounted'
      ? runDayDoc(recorded.event)
      : evolveRun(doc as RunDoc | null, recorded),
}

/** The document of a run after a fact. */
export const evolveRun = (doc: RunDoc | null, recorded: Recorded): RunDoc | null => {
  const { event } = recorded
  if (isOf(recorded, 'RunStarted')) {
    const { event } = recorded
    const { worker_id, start_time } = event
    if (doc && event.reclaimed)
      return { ...doc, worker_id, running_on: runningOn(recorded, doc), claimed_at: start_time }
    const begun = begunAs(event, recorded, { worker_id, start_time })
    return { ...begun, running_on: runningOn(recorded, begun) }
  }
  if (!doc) {
    // Any other run that ends before a worker claims it was never a run.
    if ((event.type !== 'RunFailed' && event.type !== 'RunCancelled') || !event.unclaimed) return null
    const { run_id, stream_id, stop_time } = event
    const plan = { ...event.unclaimed, run_id, stream_id }
    return evolveRun(begunAs(plan, recorded, { worker_id: '', start_time: stop_time }), recorded)
  }
  const running_on = null
  switch (event.type) {
    case 'RunRequested':
      return { ...doc, running_on } // returned: it waits for its next worker
    case 'RunSucceeded':
      return {
        ...doc,
        running_on,
        status: 'succeeded',
        stop_time: event.stop_time,
        ...payloadFields('result', payloadOf('result', event)),
      }
    case 'RunFailed':
      return {
        ...doc,
        running_on,
        status: event.retry_at ? 'pending_retry' : 'failed',
        stop_time: event.stop_time,
        error: event.error,
        error_code: event.error.code,
        error_order: doc.order,
        retry_at: (!isImported(recorded) && event.retry_at) || null,
      }
    case 'RunRetried':
      return { ...doc, status: 'failed', retry_at: null, retried_by: event.retry_run_id }
    case 'RunCancelled':
      return { ...doc, running_on, status: 'cancelled', stop_time: event.stop_time, retry_at: null }
    default:
      return doc
  }
}

/** The document of a run on no worker that begins with this fact. */
const begunAs = (
  plan: RunPlan,
  recorded: Recorded,
  { worker_id, start_time }: Pick<RunDoc, 'worker_id' | 'start_time'>,
): RunDoc => {
  const { target } = plan
  const order = orderOf(recorded)
  const fn = 'ns' in target ? `${target.ns}/${target.var}` : null
  const isScheduled = plan.run_type === 'schedule' && plan.replay_of === undefined
  return {
    run_id: plan.run_id,
    env_id: envIdOf(recorded),
    stream_id: plan.stream_id,
    build_id: plan.build_id,
    run_type: plan.run_type,
    status: 'running',
    start_time,
    stop_time: null,
    origin_run_id: plan.origin_run_id ?? null,
    event_id: plan.event_id ?? null,
    project_id: plan.project_id,
    project_name: plan.project_name,
    fn,
    attempt: plan.attempt,
    parent_run_id: plan.parent_run_id ?? null,
    replay_of: plan.replay_of ?? null,
    retry_at: null,
    worker_id,
    running_on: null,
    input_at: plan.input_at ?? null,
    order,
    requested_at: requestedAt(plan, start_time),
    claimed_at: start_time,
    retried_by: null,
    error_code: null,
    error_order: null,
    child_of: plan.parent_run_id === undefined ? null : `${plan.parent_run_id}/${order}`,
    of_schedule: isScheduled && fn !== null ? `${plan.project_id}/${fn}/${order}` : null,
  }
}

/**
 * Facts outlive the documents of their day by 36 hours (decision 0054). The rest is for clocks that differ. Without its claim,
 * the stream does not know the run, so nothing can end or retry it.
 */
const CLAIM_KEPT_MS = 48 * 3600_000

/** Whether an open run may end: the stream still has its claim. `before`: the first day that the plan keeps. */
const mayEnd = ({ status, order, claimed_at }: RunDoc, before: string): boolean => {
  if (status !== 'running' && status !== 'pending_retry') return false
  const stored = Date.parse(order.slice(0, order.indexOf('/')))
  return !(Math.max(stored, Date.parse(claimed_at)) < claimsKeptFrom(before))
}

/** No run that a worker claimed before this instant (milliseconds since 1970) can end any more. `before`: the first day that the plan keeps. */
export const claimsKeptFrom = (before: string): number => Date.parse(before) - CLAIM_KEPT_MS

/** While a file is imported, its runs seem to be in progress: their ends follow in the file, and nobody else may end them. */
const isImported = ({ metadata }: Recorded): boolean => metadata.imported_at !== undefined

const runningOn = (
  recorded: Recorded<EventOf<'RunStarted'>>,
  { order }: Pick<RunDoc, 'order'>,
): string | null => (isImported(recorded) ? null : `${recorded.event.worker_id}/${order}`)

/** A run does not wait longer: a time before that is none. */
const LONGEST_WAIT_MS = 366 * 86_400_000

/** Facts of earlier versions have no `requested_at`, and some ids contain no time: then it is the start. */
const requestedAt = ({ run_id, requested_at, attempt }: RunPlan, start_time: string): string => {
  if (requested_at !== undefined) return requested_at
  const [ms, startMs] = [timeOf(run_id), Date.parse(start_time)]
  const isKnown = attempt === 1 && hasTime(run_id) && ms <= startMs && ms > startMs - LONGEST_WAIT_MS
  return isKnown ? isoOf(ms) : start_time
}

/** The bounds of `running_on` for the runs of a worker. */
export const runsOn = withId
/** The bounds of `child_of` for the children of a run. */
export const childrenOf = withId
/** The bounds of `of_schedule` for the runs of a schedule, which `project_id/ns/var` names. */
export const scheduledRunsOf = withId
