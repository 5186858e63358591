import { isoOf } from '../clock.ts'
import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Payload, payloadFields } from '../events/payload.ts'
import type { RunError, RunPlan } from '../events/run.ts'
import { derivedIdBeside } from '../ids.ts'
import { foreign } from './decider.ts'

/** Attempts of a chain in addition to its retry policy, because earlier ones were lost through no fault of their own. */
const MAX_LOST = 3

/** More attempts than a chain has: a first run, ten retries, and those after losses. */
export const MOST_ATTEMPTS = 16

/** A run that has not ended: requested, claimed by a worker, or failed and waiting for its retry. */
export type OpenRun =
  | {
      readonly status: 'requested'
      readonly plan: RunPlan
      readonly requestedRevision: number
      /** The revision of an earlier claim whose worker returned the run; else null. */
      readonly startedRevision: number | null
    }
  | {
      readonly status: 'running'
      readonly plan: RunPlan
      readonly startedRevision: number
      readonly workerId: string
      /** False only if its worker marks the begin of its code, and has not. */
      readonly mayHaveBegun: boolean
    }
  | {
      readonly status: 'pending_retry'
      readonly plan: RunPlan
      readonly startedRevision: number
      readonly retryAt: string
    }

/** The open runs of a stream, by id. */
export type OpenRuns = Map<string, OpenRun>

export type RunCommand =
  | {
      /** The requested run cannot be claimed, or a retry of the failed one could not begin. */
      readonly type: 'AbandonRun'
      readonly run_id: string
      /** A run that has another status by now is not abandoned. */
      readonly was: 'requested' | 'pending_retry'
      readonly error: RunError
      readonly now: string
    }
  | { readonly type: 'ClaimRun'; readonly run_id: string; readonly worker_id: string; readonly now: string }
  | { readonly type: 'BeginRun'; readonly run_id: string; readonly worker_id: string }
  | { readonly type: 'ReturnRun'; readonly run_id: string; readonly worker_id: string }
  | {
      readonly type: 'EmitData'
      readonly run_id: string
      readonly data_type: string
      readonly payload: Payload
    }
  | {
      readonly type: 'SucceedRun'
      readonly run_id: string
      readonly result: Payload
      /** The run ends only if it is claimed by this worker. */
      readonly worker_id: string
      readonly now: string
    }
  | {
      readonly type: 'FailRun'
      readonly run_id: string
      readonly error: RunError
      /** True: no later attempt could begin, so there is none. */
      readonly isFinal?: boolean
      /** The run ends only if it is claimed by this worker. */
      readonly worker_id: string
      readonly now: string
    }
  | {
      /** The run was lost through no fault of its own. */
      readonly type: 'LoseRun'
      readonly run_id: string
      readonly error: RunError
      /** True: its process ended, while its worker lived. */
      readonly withProcess?: boolean
      /** The run is lost only if it is claimed by this worker. */
      readonly worker_id: string
      readonly now: string
    }
  | { readonly type: 'CancelRun'; readonly run_id: string; readonly now: string }
  | {
      readonly type: 'RetryRun'
      readonly run_id: string
      readonly retry_run_id: string
      readonly now: string
    }

export type RunEvent = EventOf<
  | 'StreamDataEmitted'
  | 'RunRequested'
  | 'RunStarted'
  | 'RunBegun'
  | 'RunSucceeded'
  | 'RunFailed'
  | 'RunRetried'
  | 'RunCancelled'
>

/** The part of the stream's decider that is about one run: its claim, its data, its end (I4) and its retry. */
export const decideRun = (command: RunCommand, runs: ReadonlyMap<string, OpenRun>): RunEvent[] => {
  const run = runs.get(command.run_id)
  switch (command.type) {
    case 'AbandonRun': {
      if (run?.status !== command.was) return []
      return [{ type: 'RunFailed', ...ending(run, command.now), ...unclaimed(run), error: command.error }]
    }

    case 'ClaimRun': {
      if (run?.status !== 'requested') return []
      const input_at = run.plan.input_at ?? {
        stream_id: run.plan.stream_id,
        revision: run.requestedRevision,
      }
      const claim = started({ ...run.plan, input_at }, command.worker_id, command.now)
      return [run.startedRevision === null ? claim : { ...claim, reclaimed: true }]
    }

    case 'BeginRun': {
      if (run?.status !== 'running' || run.workerId !== command.worker_id) throw new GoneRun(command.run_id)
      const { worker_id } = command
      return run.mayHaveBegun
        ? []
        : [{ type: 'RunBegun', run_id: run.plan.run_id, stream_id: run.plan.stream_id, worker_id }]
    }

    case 'ReturnRun': {
      if (run?.status !== 'running' || run.workerId !== command.worker_id) return []
      return [returned(run)]
    }

    case 'EmitData': {
      const { plan } = runningRun(runs, command.run_id)
      const { data_type, payload } = command
      return [
        {
          type: 'StreamDataEmitted',
          run_id: command.run_id,
          stream_id: plan.stream_id,
          data_type,
          ...payloadFields('payload', payload),
        },
      ]
    }

    case 'SucceedRun': {
      if (run?.status !== 'running' || run.workerId !== command.worker_id) return [] // I4
      return [
        {
          type: 'RunSucceeded',
          ...ending(run, command.now),
          ...payloadFields('result', command.result),
        },
      ]
    }

    case 'FailRun': {
      if (run?.status !== 'running' || run.workerId !== command.worker_id) return [] // I4
      if (command.isFinal) return [{ type: 'RunFailed', ...ending(run, command.now), error: command.error }]
      return [failedBy(run, command)]
    }

    case 'LoseRun': {
      if (run?.status !== 'running' || run.workerId !== command.worker_id) return [] // I4
      const { plan } = run
      const { lost = 0 } = plan
      const { error, now } = command
      if (!run.mayHaveBegun) return [returned(run)]
      if (startsOnce(plan)) return [{ type: 'RunFailed', ...ending(run, now), error }]
      if (lost >= MAX_LOST) return [failedBy(run, command)]
      return [
        { type: 'RunFailed', ...ending(run, now), error, retry_at: now },
        ...retried(
          {
            ...plan,
            lost: lost + 1,
            ...(command.withProcess && { lost_with_process: (plan.lost_with_process ?? 0) + 1 }),
            replaces_lost: true,
          },
          { retry_run_id: retryIdOf(plan.run_id), now },
        ),
      ]
    }

    case 'CancelRun': {
      const open = run ?? openRetry(runs, command.run_id)
      if (!open) return [] // I4
      return [{ type: 'RunCancelled', ...ending(open, command.now), ...unclaimed(open), was: open.status }]
    }

    case 'RetryRun': {
      if (run?.status !== 'pending_retry') return []
      const { replaces_lost: _, ...plan } = run.plan
      return retried(plan, command)
    }

    default:
      return command satisfies never
  }
}

/** Changes the open runs as the fact says. */
export const evolveRuns = (runs: OpenRuns, event: RunEvent, revision: number): void => {
  switch (event.type) {
    case 'StreamDataEmitted':
      break
    case 'RunRequested': {
      const { type: _, input: __, returned_by: ___, ...plan } = event
      const before = runs.get(event.run_id)
      const startedRevision = before?.status === 'running' ? before.startedRevision : null
      runs.set(event.run_id, { status: 'requested', plan, requestedRevision: revision, startedRevision })
      break
    }
    case 'RunStarted': {
      const { type: _, worker_id, start_time: __, reclaimed: ___, will_mark, ...plan } = event
      runs.set(event.run_id, {
        status: 'running',
        plan,
        startedRevision: revision,
        workerId: worker_id,
        mayHaveBegun: will_mark !== true,
      })
      break
    }
    case 'RunBegun': {
      const run = runs.get(event.run_id)
      if (run?.status === 'running') runs.set(event.run_id, { ...run, mayHaveBegun: true })
      break
    }
    case 'RunFailed': {
      const run = runs.get(event.run_id)
      if (event.retry_at === undefined || run?.status !== 'running') runs.delete(event.run_id)
      else {
        const { plan, startedRevision } = run
        runs.set(event.run_id, {
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
      runs.delete(event.run_id)
      break
    default:
      foreign(event)
  }
}

/**
 * The open attempt that follows a run in its chain, requested or running: the caller may know only the id of the run, which
 * failed or was lost meanwhile.
 */
const openRetry = (runs: ReadonlyMap<string, OpenRun>, run_id: string): OpenRun | undefined => {
  let id = run_id
  for (let attempt = 2; attempt <= MOST_ATTEMPTS; attempt++) {
    id = retryIdOf(id)
    const run = runs.get(id)
    if (run) return run
  }
  return undefined
}

/** Returns the fact that a worker claimed the run. */
export const started = (plan: RunPlan, worker_id: string, now: string): EventOf<'RunStarted'> => ({
  type: 'RunStarted',
  ...plan,
  worker_id,
  start_time: now,
  ...(plan.marks_begin && { will_mark: true }),
})

/** Returns the fact that requests a claimed run again, because its code has not begun. */
const returned = ({ plan, workerId }: Extract<OpenRun, { status: 'running' }>): EventOf<'RunRequested'> => ({
  type: 'RunRequested',
  ...plan,
  returned_by: workerId,
})

/** The run has ended or belongs to another worker: its code must not begin here. */
export class GoneRun extends AppError {
  constructor(run_id: string) {
    super('not_found', `Run ${run_id} is no longer claimed by this worker`)
  }
}

/** Returns a run that is running. Code that continues after the end of its run has no further effects. */
export const runningRun = (
  runs: ReadonlyMap<string, OpenRun>,
  run_id: string,
): Extract<OpenRun, { status: 'running' }> => {
  const run = runs.get(run_id)
  if (run?.status === 'running') return run
  throw new AppError('conflict', `Run ${run_id} is not running`)
}

/** The id of the next attempt of a run. It is derived, so a run has one. */
export const retryIdOf = (run_id: string): string => derivedIdBeside(run_id, 'retry')

/** The code of such a run never starts twice: its caller waits for it, or its function is declared so. */
const startsOnce = ({ once, target }: RunPlan): boolean => once === true || 'code' in target

/** The failure of a run, with the time of its retry if its policy has one. */
const failedBy = (
  run: OpenRun,
  { error, now }: { readonly error: RunError; readonly now: string },
): EventOf<'RunFailed'> => {
  const delay = delayOf(run.plan)
  return {
    type: 'RunFailed',
    ...ending(run, now),
    error,
    ...(delay !== undefined && { retry_at: isoOf(Date.parse(now) + delay) }),
  }
}

/** Milliseconds from the failure of an attempt to its retry; undefined if it is the last attempt. */
export const delayOf = ({
  retry,
  attempt,
  lost = 0,
}: Pick<RunPlan, 'retry' | 'attempt' | 'lost'>): number | undefined =>
  retry !== undefined && attempt - lost <= retry.attempts ? retry.delay : undefined

/** The facts that request the next attempt of a chain. */
const retried = (
  plan: RunPlan,
  { retry_run_id, now }: { readonly retry_run_id: string; readonly now: string },
): RunEvent[] => [
  { type: 'RunRetried', run_id: plan.run_id, stream_id: plan.stream_id, retry_run_id },
  {
    type: 'RunRequested',
    ...plan,
    run_id: retry_run_id,
    attempt: plan.attempt + 1,
    origin_run_id: plan.origin_run_id ?? plan.run_id,
    requested_at: now,
  },
]

/** The plan of a retry that was never claimed: the run before it names it, so it must be found. */
const unclaimed = ({ plan, startedRevision }: OpenRun): { readonly unclaimed?: RunPlan } =>
  startedRevision === null && plan.attempt > 1 ? { unclaimed: plan } : {}

const ending = (run: OpenRun, now: string) => ({
  run_id: run.plan.run_id,
  stream_id: run.plan.stream_id,
  run_type: run.plan.run_type,
  started_revision: run.startedRevision,
  stop_time: now,
})
