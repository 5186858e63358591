import type { EventOf } from '../../src/events/index.ts'
import type { RunPlan } from '../../src/events/run.ts'
import { derivedIdBeside } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'
import {
  fail,
  cancel,
  retry,
  cancelled,
  claim,
  created,
  handled,
  published,
  error,
  failed,
  failedForNow,
  given,
  now,
  plan,
  requested,
  retried,
  running,
  runningWithRetry,
  started,
  succeeded,
} from './streamFacts.ts'

const returnRun = { type: 'ReturnRun', run_id: 'run', worker_id: 'worker' } as const
const returned: EventOf<'RunRequested'> = { type: 'RunRequested', ...plan, returned_by: 'worker' }
const returning = suite('a claimed run whose code has not begun')
returning('is requested again with the same id, input and attempt', () =>
  given(...running)
    .when(returnRun)
    .then(returned),
)
returning('is returned only by the worker that claimed it, and once', () => {
  given(...running)
    .when({ ...returnRun, worker_id: 'other' })
    .then()
  given(...running, returned)
    .when(returnRun)
    .then()
  given(...running, succeeded)
    .when(returnRun)
    .then()
})
returning('is claimed by its next worker, as before', () =>
  given(...running, returned)
    .when({ ...claim, worker_id: 'other' })
    .then({ ...started(plan, 'other'), reclaimed: true }),
)
returning('belongs to its next worker alone', () => {
  const again = [...running, returned, { ...started(plan, 'other'), reclaimed: true }]
  given(...again)
    .when(fail)
    .then()
  given(...again)
    .when({ ...fail, worker_id: 'other' })
    .then({ ...failed, started_revision: 5 })
})
returning('points to its first start when it is cancelled before its next worker claims it', () =>
  given(...running, returned)
    .when(cancel)
    .then({ ...cancelled, was: 'requested' }),
)
returning.run()

const lose = { type: 'LoseRun', run_id: 'run', worker_id: 'worker', error, now } as const
const next = derivedIdBeside('run', 'retry')
const lostOnce = (
  plan: RunPlan,
  started_revision = 3,
): EventOf<'RunFailed' | 'RunRetried' | 'RunRequested'>[] => [
  { ...failed, started_revision, retry_at: now },
  { type: 'RunRetried', run_id: 'run', stream_id: 's', retry_run_id: next },
  {
    type: 'RunRequested',
    ...plan,
    run_id: next,
    attempt: plan.attempt + 1,
    lost: (plan.lost ?? 0) + 1,
    replaces_lost: true,
    origin_run_id: plan.origin_run_id ?? 'run',
    requested_at: now,
  },
]
const losing = suite('a run that was lost through no fault of its own')
losing('starts again at once as its next attempt, with and without a retry policy', () => {
  given(...running)
    .when(lose)
    .then(...lostOnce(plan))
  given(...runningWithRetry)
    .when(lose)
    .then(...lostOnce(retried))
})
losing('counts apart whether its process ended, because a dead worker says nothing about the run', () => {
  const [failure, retry, request] = lostOnce(plan)
  if (!failure || !retry || !request) throw new Error('unreachable')
  given(...running)
    .when({ ...lose, withProcess: true })
    .then(failure, retry, { ...request, lost_with_process: 1 } as typeof request)
})
losing('is cancelled in whichever of its attempts is open', () => {
  const third = derivedIdBeside(next, 'retry')
  const second = { ...plan, run_id: next, attempt: 2, lost: 1, origin_run_id: 'run' }
  const cancelledThere = { ...cancelled, run_id: third, started_revision: 11 }
  const waiting = { ...second, replaces_lost: true, requested_at: now }
  given(...running, ...lostOnce(plan))
    .when(cancel)
    .then({ ...cancelled, run_id: next, started_revision: null, was: 'requested', unclaimed: waiting })
  const lostTwice = [
    ...running,
    ...lostOnce(plan),
    started(second),
    { ...failed, run_id: next, started_revision: 7, retry_at: now },
    { type: 'RunRetried', run_id: next, stream_id: 's', retry_run_id: third } as const,
    { type: 'RunRequested', ...second, run_id: third, attempt: 3, lost: 2, requested_at: now } as const,
    started({ ...second, run_id: third, attempt: 3, lost: 2 }),
  ]
  for (const run_id of ['run', next, third])
    given(...lostTwice)
      .when({ ...cancel, run_id })
      .then(cancelledThere)
  given(...lostTwice, cancelledThere)
    .when(cancel)
    .then()
})
losing('is lost only for the worker that claimed it, and once', () => {
  given(...running)
    .when({ ...lose, worker_id: 'other' })
    .then()
  given(...running, ...lostOnce(plan))
    .when(lose)
    .then()
  given(created, requested).when(lose).then()
  for (const first of [succeeded, failed, cancelled])
    given(...running, first)
      .when(lose)
      .then()
})
losing('starts again three times, then fails', () => {
  const second = { ...plan, attempt: 3, lost: 2, origin_run_id: 'first' }
  given(created, started(second))
    .when(lose)
    .then(...lostOnce(second, 1))
  const third = { ...plan, attempt: 4, lost: 3, origin_run_id: 'first' }
  given(created, started(third))
    .when(lose)
    .then({ ...failed, started_revision: 1 })
})
losing('keeps all attempts of its retry policy', () => {
  const third = { ...retried, attempt: 4, lost: 3 }
  given(created, started(third))
    .when(fail)
    .then({ ...failedForNow, started_revision: 1 })
  given(created, started({ ...third, attempt: 5 }))
    .when(fail)
    .then({ ...failedForNow, started_revision: 1 })
  given(created, started({ ...third, attempt: 6 }))
    .when(fail)
    .then({ ...failed, started_revision: 1 })
})
losing('counts again with its next retry by policy', () => {
  const second = { ...retried, attempt: 2, lost: 1, replaces_lost: true }
  const { replaces_lost: _, ...counted } = second
  given(created, started(second), { ...failedForNow, started_revision: 1 })
    .when(retry)
    .then(
      { type: 'RunRetried', run_id: 'run', stream_id: 's', retry_run_id: 'again' },
      {
        type: 'RunRequested',
        ...counted,
        run_id: 'again',
        attempt: 3,
        origin_run_id: 'run',
        requested_at: now,
      },
    )
})
losing('uses its retry policy when it was lost too often', () =>
  given(created, started({ ...retried, attempt: 4, lost: 3 }))
    .when(lose)
    .then({ ...failedForNow, started_revision: 1 }),
)
losing('fails when it may start only once: declared so, or evaluated code', () => {
  for (const once of [
    { ...retried, once: true },
    { ...plan, target: { code: '1' } },
  ])
    given(created, started(once))
      .when(lose)
      .then({ ...failed, started_revision: 1 })
})
losing.run()

const single: RunPlan = { ...plan, once: true, marks_begin: true }
const claimedOnce = [created, published, handled, { ...started(single), will_mark: true }]
const begun: EventOf<'RunBegun'> = { type: 'RunBegun', run_id: 'run', stream_id: 's', worker_id: 'worker' }
const begin = { type: 'BeginRun', run_id: 'run', worker_id: 'worker' } as const
const marking = suite('a run that may start only once')
marking('is claimed with the promise to mark the begin of its code', () =>
  given(created, published)
    .when({
      type: 'DispatchEvent',
      stream_id: 's',
      event_id: 'event',
      plans: [single],
      worker_id: 'worker',
      now,
    })
    .then(handled, { ...started(single), will_mark: true }),
)
marking('is marked once, by the worker that claimed it', () => {
  given(...claimedOnce)
    .when(begin)
    .then(begun)
  given(...claimedOnce, begun)
    .when(begin)
    .then()
  for (const other of [[succeeded], [{ ...returned, once: true, marks_begin: true }]])
    given(...claimedOnce, ...other)
      .when(begin)
      .refuses('not_found')
})
marking('goes to another worker when it is lost before its code began', () =>
  given(...claimedOnce)
    .when(lose)
    .then({ ...returned, once: true, marks_begin: true }),
)
marking('fails when it is lost after that', () =>
  given(...claimedOnce, begun)
    .when(lose)
    .then(failed),
)
marking('may begin on its next worker, whatever the first one marked', () => {
  const again = [
    ...claimedOnce,
    begun,
    { ...returned, once: true, marks_begin: true },
    { ...started(single, 'other'), reclaimed: true, will_mark: true },
  ]
  given(...again)
    .when({ ...lose, worker_id: 'other' })
    .then({ ...returned, once: true, marks_begin: true, returned_by: 'other' })
})
marking('fails when it was claimed by a worker that marks nothing, as those of 0.1.0', () =>
  given(created, published, handled, started(single)).when(lose).then(failed),
)
marking.run()
