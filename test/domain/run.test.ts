import type { DomainEvent } from '../../src/events/index.ts'
import type { RunPlan } from '../../src/events/run.ts'
import { derivedIdBeside } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'
import {
  claim,
  fail,
  cancel,
  retry,
  asked,
  cancelled,
  created,
  ending,
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

const succeed = {
  type: 'SucceedRun',
  run_id: 'run',
  result: { value: 7 },
  worker_id: 'worker',
  now,
} as const
const emit = { type: 'EmitData', run_id: 'run', data_type: 'token', payload: { value: 'a' } } as const

const abandoning = suite('a requested run that a defect prevents from starting')
abandoning('fails without having started and without a retry, unless it started meanwhile', () => {
  const abandon = { type: 'AbandonRun', run_id: 'run', was: 'requested', error, now } as const
  given(created, { ...requested, retry: { attempts: 2, delay: 1500 } })
    .when(abandon)
    .then({ ...failed, started_revision: null })
  given(...running)
    .when(abandon)
    .then()
  given(created).when(abandon).then()
})
abandoning.run()

const claiming = suite('claiming a run')
claiming('starts it, with the request as its input', () =>
  given(created, requested)
    .when(claim)
    .then(started({ ...asked, input_at: { stream_id: 's', revision: 1 } })),
)
claiming('of a retry keeps the input of the first run', () => {
  const input_at = { stream_id: 's', revision: 9 }
  given(created, { ...requested, input_at })
    .when(claim)
    .then(started({ ...asked, input_at }))
})
claiming('stores nothing for a run that is claimed, ended or unknown', () => {
  given(...running)
    .when({ ...claim, worker_id: 'other' })
    .then()
  given(...running, succeeded)
    .when(claim)
    .then()
  given(created, requested, { ...cancelled, started_revision: null, was: 'requested' })
    .when(claim)
    .then()
  given(created).when(claim).then()
})
claiming.run()

const emitting = suite('live data')
emitting('comes from a run while it runs', () =>
  given(...running)
    .when(emit)
    .then({ type: 'StreamDataEmitted', run_id: 'run', stream_id: 's', data_type: 'token', payload: 'a' }),
)
emitting('is refused before and after', () => {
  given(created, requested).when(emit).refuses('conflict')
  given(...running, succeeded)
    .when(emit)
    .refuses('conflict')
  given(...runningWithRetry, failedForNow)
    .when(emit)
    .refuses('conflict')
  given(created).when(emit).refuses('conflict')
})
emitting.run()

const endings = suite('the end of a run (I4)')
endings('success points back to the start', () =>
  given(...running)
    .when(succeed)
    .then(succeeded),
)
endings('a large result is kept by reference', () => {
  const ref = { key: 'payloads/bb', size: 70_000, sha256: 'bb' }
  given(...running)
    .when({ ...succeed, result: { ref } })
    .then({ type: 'RunSucceeded', ...ending, result_ref: ref })
})
endings('failure without a policy is the end', () =>
  given(...running)
    .when(fail)
    .then(failed),
)
endings('failure is reported by the worker that claimed the run', () =>
  given(...running)
    .when({ ...fail, worker_id: 'other' })
    .then(),
)
endings('failure that no later attempt can change is the end in spite of its policy', () =>
  given(...runningWithRetry)
    .when({ ...fail, isFinal: true })
    .then(failed),
)
endings('a retry that waits can be abandoned', () =>
  given(...runningWithRetry, failedForNow)
    .when({ type: 'AbandonRun', run_id: 'run', was: 'pending_retry', error, now })
    .then(failed),
)
endings('cancelling records the earlier status of the run', () => {
  given(...running)
    .when(cancel)
    .then(cancelled)
  given(created, requested)
    .when(cancel)
    .then({ ...cancelled, started_revision: null, was: 'requested' })
  given(...runningWithRetry, failedForNow)
    .when(cancel)
    .then({ ...cancelled, was: 'pending_retry' })
})
endings('cancelling a failed run cancels its next attempt, also one that runs', () => {
  const retry_run_id = derivedIdBeside('run', 'retry')
  const again = { ...requested, run_id: retry_run_id, attempt: 2, origin_run_id: 'run' }
  const { type: _, ...retryPlan } = again
  const retriedBy = { type: 'RunRetried', run_id: 'run', stream_id: 's', retry_run_id } as const
  const until = [...runningWithRetry, failedForNow, retriedBy, again]
  given(...until)
    .when(cancel)
    .then({
      ...cancelled,
      run_id: retry_run_id,
      started_revision: null,
      was: 'requested',
      unclaimed: retryPlan,
    })
  given(...until)
    .when({ type: 'AbandonRun', run_id: retry_run_id, was: 'requested', error, now })
    .then({ ...failed, run_id: retry_run_id, started_revision: null, unclaimed: retryPlan })
  given(...until, started({ ...plan, run_id: retry_run_id, attempt: 2 }))
    .when(cancel)
    .then({ ...cancelled, run_id: retry_run_id, started_revision: 7 })
})
for (const first of [succeeded, failed, cancelled]) {
  endings(`${first.type} is final: nothing changes it`, () => {
    for (const command of [succeed, fail, cancel, claim, retry])
      given(...running, first)
        .when(command)
        .then()
  })
}
endings('a run that was never started cannot succeed or fail', () => {
  for (const command of [succeed, fail]) {
    given(created, requested).when(command).then()
    given(created).when(command).then()
  }
})
endings('while it waits for its retry, a run does not succeed or fail again', () => {
  for (const command of [succeed, fail])
    given(...runningWithRetry, failedForNow)
      .when(command)
      .then()
})
endings.run()

const attempt = (n: number, attempts: number): RunPlan => ({
  ...plan,
  attempt: n,
  retry: { attempts, delay: 1500 },
})
const retrying = suite('retries')
retrying('a failure is retried after the delay', () =>
  given(...runningWithRetry)
    .when(fail)
    .then(failedForNow),
)
for (const [attempts, last] of [
  [1, 2],
  [2, 3],
  [10, 11],
] as const) {
  retrying(`${attempts} attempts: the run and ${attempts} more`, () => {
    given(created, started(attempt(last - 1, attempts)))
      .when(fail)
      .then({ ...failedForNow, started_revision: 1 })
    given(created, started(attempt(last, attempts)))
      .when(fail)
      .then({ ...failed, started_revision: 1 })
  })
}
retrying('no attempts are no retries', () =>
  given(created, started(attempt(1, 0)))
    .when(fail)
    .then({ ...failed, started_revision: 1 }),
)
retrying('the retry is a new run that points to the original', () =>
  given(...runningWithRetry, failedForNow)
    .when(retry)
    .then(
      { type: 'RunRetried', run_id: 'run', stream_id: 's', retry_run_id: 'again' },
      {
        type: 'RunRequested',
        ...retried,
        run_id: 'again',
        attempt: 2,
        origin_run_id: 'run',
        requested_at: now,
      },
    ),
)
retrying('the retry has the depth of the run, because it has the same cause', () => {
  const deep = { ...retried, depth: 7 }
  given(created, started(deep), { ...failedForNow, started_revision: 1 })
    .when(retry)
    .then(
      { type: 'RunRetried', run_id: 'run', stream_id: 's', retry_run_id: 'again' },
      { type: 'RunRequested', ...deep, run_id: 'again', attempt: 2, origin_run_id: 'run', requested_at: now },
    )
})
retrying('the retry of a retry points to the original too', () => {
  const second = { ...retried, run_id: 'run', attempt: 2, origin_run_id: 'first' }
  given(created, started(second), { ...failedForNow, started_revision: 1 })
    .when(retry)
    .then(
      { type: 'RunRetried', run_id: 'run', stream_id: 's', retry_run_id: 'again' },
      {
        type: 'RunRequested',
        ...second,
        run_id: 'again',
        attempt: 3,
        origin_run_id: 'first',
        requested_at: now,
      },
    )
})
retrying('a run gets one retry, and none when it runs, was cancelled or is unknown', () => {
  const retriedFact: DomainEvent = {
    type: 'RunRetried',
    run_id: 'run',
    stream_id: 's',
    retry_run_id: 'again',
  }
  given(...runningWithRetry, failedForNow, retriedFact)
    .when(retry)
    .then()
  given(...runningWithRetry, failedForNow, { ...cancelled, was: 'pending_retry' })
    .when(retry)
    .then()
  given(...runningWithRetry)
    .when(retry)
    .then()
  given(created).when(retry).then()
})
retrying.run()
