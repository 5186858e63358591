import { stream } from '../../src/domain/stream.ts'
import type { EventOf } from '../../src/events/index.ts'
import type { RunPlan } from '../../src/events/run.ts'
import { given as givenOf } from '../support/given.ts'

export const now = '2026-05-01T10:00:00.000Z'
export const given = givenOf(stream, { env_id: 'env', correlation_id: 'c' })

/** A run as it is requested: the request is its input. */
export const asked: RunPlan = {
  run_id: 'run',
  stream_id: 's',
  run_type: 'event',
  build_id: 'build',
  project_id: 'project',
  project_name: 'shop',
  target: { ns: 'orders', var: 'onCreated' },
  attempt: 1,
  event_id: 'event',
}
export const plan: RunPlan = { ...asked, input_at: { stream_id: 's', revision: 1 } }
export const retried: RunPlan = { ...plan, retry: { attempts: 2, delay: 1500 } }

export const created: EventOf<'StreamCreated'> = { type: 'StreamCreated', stream_id: 's' }
export const published: EventOf<'EventPublished'> = {
  type: 'EventPublished',
  event_id: 'event',
  stream_id: 's',
  event_type: 'order:created',
  event_data: { n: 1 },
  source: 'api',
  event_time: now,
}
export const handled: EventOf<'EventHandled'> = {
  type: 'EventHandled',
  event_id: 'event',
  stream_id: 's',
  run_ids: ['run'],
}
export const requested: EventOf<'RunRequested'> = { type: 'RunRequested', ...asked }
export const started = (plan: RunPlan, worker_id = 'worker'): EventOf<'RunStarted'> => ({
  type: 'RunStarted',
  ...plan,
  worker_id,
  start_time: now,
})
export const ending = {
  run_id: 'run',
  stream_id: 's',
  run_type: 'event',
  started_revision: 3,
  stop_time: now,
} as const
export const error = { code: 'user_error', message: 'it broke' }
export const succeeded: EventOf<'RunSucceeded'> = { type: 'RunSucceeded', ...ending, result: 7 }
export const failed: EventOf<'RunFailed'> = { type: 'RunFailed', ...ending, error }
export const failedForNow: EventOf<'RunFailed'> = { ...failed, retry_at: '2026-05-01T10:00:01.500Z' }
export const cancelled: EventOf<'RunCancelled'> = { type: 'RunCancelled', ...ending, was: 'running' }

export const running = [created, published, handled, started(plan)]
export const runningWithRetry = [created, published, handled, started(retried)]

/** Commands about that run. */
export const claim = { type: 'ClaimRun', run_id: 'run', worker_id: 'worker', now } as const
export const fail = { type: 'FailRun', run_id: 'run', error, worker_id: 'worker', now } as const
export const cancel = { type: 'CancelRun', run_id: 'run', now } as const
export const retry = { type: 'RetryRun', run_id: 'run', retry_run_id: 'again', now } as const
