import { isoOf } from '../clock.ts'
import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Payload, payloadFields } from '../events/payload.ts'
import type { RunError, RunPlan } from '../events/run.ts'
import { foreign } from './decider.ts'

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

/** The open runs of a stream, by id. */
export type OpenRuns = Map<string, OpenRun>

export type RunCommand =
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

export type RunEvent = EventOf<
  | 'StreamDataEmitted'
  | 'RunRequested'
  | 'RunStarted'
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
      if (run?.status !== 'requested') return []
      return [{ type: 'RunFailed', ...ending(run, command.now), error: command.error }]
    }

    case 'ClaimRun': {
      if (run?.status !== 'requested') return []
      const input_at = run.plan.input_at ?? {
        stream_id: run.plan.stream_id,
        revision: run.requestedRevision,
      }
      return [started({ ...run.plan, input_at }, command.worker_id, command.now)]
    }

    case 'EmitData': {
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
      if (!run) return [] // I4
      return [{ type: 'RunCancelled', ...ending(run, command.now), was: run.status }]
    }

    case 'RetryRun': {
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
}

/** Changes the open runs as the fact says. */
export const evolveRuns = (runs: OpenRuns, event: RunEvent, revision: number): void => {
  switch (event.type) {
    case 'StreamDataEmitted':
      break
    case 'RunRequested': {
      const { type: _, input: __, ...plan } = event
      runs.set(event.run_id, { status: 'requested', plan, requestedRevision: revision })
      break
    }
    case 'RunStarted': {
      const { type: _, worker_id, start_time: __, ...plan } = event
      runs.set(event.run_id, {
        status: 'running',
        plan,
        startedRevision: revision,
        workerId: worker_id,
      })
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

/** Returns the fact that a worker claimed the run. */
export const started = (plan: RunPlan, worker_id: string, now: string): EventOf<'RunStarted'> => ({
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
