import * as assert from 'uvu/assert'
import { isIdle, stream } from '../../src/domain/stream.ts'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import type { RunPlan } from '../../src/events/run.ts'
import { derivedIdBeside } from '../../src/ids.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const now = '2026-05-01T10:00:00.000Z'
const nowMs = Date.parse(now)
const given = givenOf(stream, { env_id: 'env', correlation_id: 'c' })

const plan: RunPlan = {
  run_id: 'run',
  stream_id: 's',
  run_type: 'event',
  build_id: 'build',
  project_id: 'project',
  project_name: 'shop',
  target: { ns: 'orders', var: 'onCreated' },
  attempt: 1,
  event_id: 'event',
  input_at: { stream_id: 's', revision: 1 },
}
const retried: RunPlan = { ...plan, retry: { attempts: 2, delay: 1500 } }
const { input_at: _, ...asked } = plan

const created: DomainEvent = { type: 'StreamCreated', stream_id: 's' }
const published: EventOf<'EventPublished'> = {
  type: 'EventPublished',
  event_id: 'event',
  stream_id: 's',
  event_type: 'order:created',
  event_data: { n: 1 },
  source: 'api',
  event_time: now,
}
const handled: EventOf<'EventHandled'> = {
  type: 'EventHandled',
  event_id: 'event',
  stream_id: 's',
  run_ids: ['run'],
}
const requested: EventOf<'RunRequested'> = { type: 'RunRequested', ...asked }
const started = (plan: RunPlan, worker_id = 'worker'): EventOf<'RunStarted'> => ({
  type: 'RunStarted',
  ...plan,
  worker_id,
  start_time: now,
})
const ending = {
  run_id: 'run',
  stream_id: 's',
  run_type: 'event',
  started_revision: 3,
  stop_time: now,
} as const
const error = { code: 'user_error', message: 'it broke' }
const succeeded: EventOf<'RunSucceeded'> = { type: 'RunSucceeded', ...ending, result: 7 }
const failed: EventOf<'RunFailed'> = { type: 'RunFailed', ...ending, error }
const failedForNow: EventOf<'RunFailed'> = { ...failed, retry_at: '2026-05-01T10:00:01.500Z' }
const cancelled: EventOf<'RunCancelled'> = { type: 'RunCancelled', ...ending, was: 'running' }

const running = [created, published, handled, started(plan)]
const runningWithRetry = [created, published, handled, started(retried)]

const publish = (options: { create?: boolean; env_id?: string } = {}) => ({
  type: 'PublishEvent' as const,
  stream_id: 's',
  env_id: options.env_id ?? 'env',
  event_id: 'event',
  event_type: 'order:created',
  data: { value: { n: 1 } },
  source: 'api',
  create: options.create ?? false,
  now,
})
const dispatch = {
  type: 'DispatchEvent',
  stream_id: 's',
  event_id: 'event',
  plans: [plan],
  worker_id: 'worker',
  now,
} as const
const request = { type: 'RequestRun', env_id: 'env', plan: asked, create: false } as const
const claim = { type: 'ClaimRun', run_id: 'run', worker_id: 'worker', now } as const
const succeed = { type: 'SucceedRun', run_id: 'run', result: { value: 7 }, now } as const
const fail = { type: 'FailRun', run_id: 'run', error, worker_id: 'worker', now, nowMs } as const
const cancel = { type: 'CancelRun', run_id: 'run', now } as const
const retry = { type: 'RetryRun', run_id: 'run', retry_run_id: 'again' } as const
const emit = { type: 'EmitData', run_id: 'run', data_type: 'token', payload: { value: 'a' } } as const

const publishing = suite('publishing an event')
publishing('creates the stream when the command requests it', () =>
  given()
    .when(publish({ create: true }))
    .then(created, published),
)
publishing('continues an existing stream', () => given(created).when(publish()).then(published))
publishing('creates the stream once', () =>
  given(created)
    .when(publish({ create: true }))
    .then(published),
)
publishing('under a key is done once, whether the event was handled meanwhile or not', () => {
  const event_id = derivedIdBeside('01a1faf6-082e-7004-be21-1748e5bd2d51', 'event')
  const again = { ...publish({ create: true }), event_id }
  given(created, { ...published, event_id })
    .when(again)
    .then()
  given(created, { ...published, event_id }, { ...handled, event_id })
    .when(again)
    .then()
  given(created, published)
    .when(again)
    .then({ ...published, event_id })
})
publishing('is refused without a stream', () => given().when(publish()).refuses('not_found'))
publishing("is refused on another environment's stream, made or not (I7)", () => {
  given(created)
    .when(publish({ env_id: 'other' }))
    .refuses('not_found')
  given(created)
    .when(publish({ env_id: 'other', create: true }))
    .refuses('not_found')
})
publishing('keeps a large payload by reference', () => {
  const ref = { key: 'payloads/aa', size: 70_000, sha256: 'aa' }
  const { event_data: _, ...rest } = published
  given(created)
    .when({ ...publish(), data: { ref } })
    .then({ ...rest, event_data_ref: ref })
})
publishing('with a claim also gives it to its handlers', () =>
  given(created)
    .when({ ...publish(), claim: { plans: [plan], worker_id: 'worker' } })
    .then(published, handled, started(plan)),
)
publishing.run()

const dispatching = suite('dispatching an event (I3)')
dispatching('claims all runs of its handlers in one append', () =>
  given(created, published)
    .when({ ...dispatch, plans: [plan, { ...plan, run_id: 'other' }] })
    .then({ ...handled, run_ids: ['run', 'other'] }, started(plan), started({ ...plan, run_id: 'other' })),
)
dispatching('is stored also without handlers', () =>
  given(created, published)
    .when({ ...dispatch, plans: [] })
    .then({ ...handled, run_ids: [] }),
)
dispatching('stores nothing when it is repeated, by any worker, also when the runs have ended', () => {
  given(...running)
    .when(dispatch)
    .then()
  given(...running)
    .when({ ...dispatch, worker_id: 'other' })
    .then()
  given(...running, succeeded)
    .when(dispatch)
    .then()
})
dispatching('stores nothing for an event that does not exist', () => given(created).when(dispatch).then())
dispatching(
  'that a defect prevents is recorded with the reason, unless the event was dispatched meanwhile',
  () => {
    const abandon = { type: 'AbandonEvent', stream_id: 's', event_id: 'event', error } as const
    given(created, published)
      .when(abandon)
      .then({ ...handled, run_ids: [], error })
    given(...running)
      .when(abandon)
      .then()
    given(created).when(abandon).then()
  },
)
dispatching.run()

const abandoning = suite('a requested run that a defect prevents from starting')
abandoning('fails without having started and without a retry, unless it started meanwhile', () => {
  const abandon = { type: 'AbandonRun', run_id: 'run', error, now } as const
  given(created, { ...requested, retry: { attempts: 2, delay: 1500 } })
    .when(abandon)
    .then({ ...failed, started_revision: null })
  given(...running)
    .when(abandon)
    .then()
  given(created).when(abandon).then()
})
abandoning.run()

const requesting = suite('requesting a run')
requesting('is stored on a stream of the environment', () => given(created).when(request).then(requested))
requesting('creates the stream when the command requests it', () =>
  given()
    .when({ ...request, create: true })
    .then(created, requested),
)
requesting('carries its input', () => {
  const input = { kind: 'args', value: [1, 2] } as const
  given(created)
    .when({ ...request, input })
    .then({ ...requested, input })
})
requesting('with a claim also starts it', () => {
  const claim = { worker_id: 'worker', now }
  given(created)
    .when({ ...request, plan, claim })
    .then({ type: 'RunRequested', ...plan }, started(plan))
})
requesting('twice has the effect of one request', () => {
  given(created, requested).when(request).then()
  given(created, requested, started(plan)).when(request).then()
})
requesting('stores nothing if its new stream exists already: a tick fires once', () => {
  given(created, requested, started(plan), succeeded)
    .when({ ...request, create: true })
    .then()
  given(created)
    .when({ ...request, create: true })
    .then()
})
requesting('is refused without a stream of the environment', () => {
  given().when(request).refuses('not_found')
  given(created)
    .when({ ...request, env_id: 'other' })
    .refuses('not_found')
})
requesting.run()

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
      { type: 'RunRequested', ...retried, run_id: 'again', attempt: 2, origin_run_id: 'run' },
    ),
)
retrying('the retry has the depth of the run, because it has the same cause', () => {
  const deep = { ...retried, depth: 7 }
  given(created, started(deep), { ...failedForNow, started_revision: 1 })
    .when(retry)
    .then(
      { type: 'RunRetried', run_id: 'run', stream_id: 's', retry_run_id: 'again' },
      { type: 'RunRequested', ...deep, run_id: 'again', attempt: 2, origin_run_id: 'run' },
    )
})
retrying('the retry of a retry points to the original too', () => {
  const second = { ...retried, run_id: 'run', attempt: 2, origin_run_id: 'first' }
  given(created, started(second), { ...failedForNow, started_revision: 1 })
    .when(retry)
    .then(
      { type: 'RunRetried', run_id: 'run', stream_id: 's', retry_run_id: 'again' },
      { type: 'RunRequested', ...second, run_id: 'again', attempt: 3, origin_run_id: 'first' },
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

const idle = suite('an idle stream')
const idleAfter = (...facts: readonly DomainEvent[]): boolean =>
  isIdle(
    facts.reduce(
      (state, event, revision) =>
        stream.evolve(state, { event, revision, metadata: { env_id: 'env', correlation_id: 'c' } }),
      stream.initial(),
    ),
  )
for (const [says, facts, is] of [
  ['nothing happened yet', [created], true],
  ['an event waits for its handlers', [created, published], false],
  ['an event had no handlers', [created, published, { ...handled, run_ids: [] }], true],
  ['a run is wanted', [created, requested], false],
  ['a run runs', running, false],
  ['a run succeeded', [...running, succeeded], true],
  ['a run failed', [...running, failed], true],
  ['a run was cancelled', [...running, cancelled], true],
  ['a run waits for its retry', [...runningWithRetry, failedForNow], false],
  [
    'live data came',
    [...running, { type: 'StreamDataEmitted', run_id: 'run', stream_id: 's', data_type: 'x' }],
    false,
  ],
] as const satisfies readonly (readonly [string, readonly DomainEvent[], boolean])[]) {
  idle(`${is ? 'is' : 'is not'} one where ${says}`, () => assert.is(idleAfter(...facts), is))
}
idle.run()
