import * as assert from 'uvu/assert'
import { isoOf } from '../../src/clock.ts'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import { derivedId, newId, timeOf } from '../../src/ids.ts'
import { runs } from '../../src/projections/runs.ts'
import { suite } from '../support/suite.ts'
import { docsOf } from '../support/docsOf.ts'
import { at, beginsWith, docsAfter, recorded } from './recorded.ts'

const start_time = '2026-05-01T09:00:00.000Z'
const stop_time = '2026-05-01T09:00:01.000Z'
const retry_at = '2026-05-01T09:00:02.000Z'
const started: EventOf<'RunStarted'> = {
  type: 'RunStarted',
  run_id: 'run',
  stream_id: 's',
  run_type: 'event',
  build_id: 'b',
  project_id: 'p',
  project_name: 'shop',
  target: { ns: 'orders', var: 'onCreated' },
  attempt: 1,
  event_id: 'e',
  input_at: { stream_id: 's', revision: 1 },
  worker_id: 'w',
  start_time,
}
const { worker_id: _, start_time: __, ...plan } = started
const asked: EventOf<'RunRequested'> = { ...plan, type: 'RunRequested' }
const ending = { run_id: 'run', stream_id: 's', run_type: 'event', started_revision: 3, stop_time } as const
const error = { code: 'user_error', message: 'broke', stack: 'at orders' }
const succeeded: DomainEvent = { type: 'RunSucceeded', ...ending, result: { ok: true } }
const failed: DomainEvent = { type: 'RunFailed', ...ending, error }
const failedForNow: DomainEvent = { ...failed, retry_at }
const retried: DomainEvent = { type: 'RunRetried', run_id: 'run', stream_id: 's', retry_run_id: 'again' }
const cancelled: DomainEvent = { type: 'RunCancelled', ...ending, was: 'running' }

const running = {
  run_id: 'run',
  env_id: 'env',
  stream_id: 's',
  build_id: 'b',
  run_type: 'event',
  status: 'running',
  start_time,
  stop_time: null,
  origin_run_id: null,
  event_id: 'e',
  project_id: 'p',
  project_name: 'shop',
  fn: 'orders/onCreated',
  attempt: 1,
  parent_run_id: null,
  replay_of: null,
  retry_at: null,
  worker_id: 'w',
  running_on: 'w/2026-05-01T10:00:00.000Z/0000000000000001',
  input_at: { stream_id: 's', revision: 1 },
  order: '2026-05-01T10:00:00.000Z/0000000000000001',
  requested_at: start_time,
  claimed_at: start_time,
  retried_by: null,
  error_code: null,
  error_order: null,
  child_of: null,
  of_schedule: null,
} as const
const withError = { error, error_code: 'user_error', error_order: running.order }
const over = { ...running, stop_time, running_on: null }

const run = suite('the document of a run')
for (const [what, facts, expected] of [
  ['starts', [started], running],
  ['succeeds with its result', [started, succeeded], { ...over, status: 'succeeded', result: { ok: true } }],
  [
    'succeeds with nothing',
    [started, { type: 'RunSucceeded', ...ending }],
    { ...over, status: 'succeeded', result: null },
  ],
  [
    'succeeds with a large result',
    [started, { type: 'RunSucceeded', ...ending, result_ref: { key: 'k', size: 1, sha256: 'h' } }],
    { ...over, status: 'succeeded', result_ref: { key: 'k', size: 1, sha256: 'h' } },
  ],
  ['fails', [started, failed], { ...over, status: 'failed', ...withError }],
  ['fails for now', [started, failedForNow], { ...over, status: 'pending_retry', ...withError, retry_at }],
  [
    'fails when it got its retry',
    [started, failedForNow, retried],
    { ...over, status: 'failed', ...withError, retried_by: 'again' },
  ],
  ['is cancelled', [started, cancelled], { ...over, status: 'cancelled' }],
  [
    'is cancelled while it waits',
    [started, failedForNow, cancelled],
    { ...over, status: 'cancelled', ...withError },
  ],
] as const satisfies readonly (readonly [string, readonly DomainEvent[], unknown])[]) {
  run(what, () => assert.equal(docsAfter(runs, facts), { run: expected }))
}
run('that no worker claimed is not listed', () => {
  assert.equal(docsAfter(runs, [{ ...cancelled, started_revision: null, was: 'requested' }]), {})
})
run('that retries another one and that no worker claimed ends in its own document', () => {
  const retry = { ...plan, attempt: 2, origin_run_id: 'first', requested_at: start_time }
  const { type: _, ...planned } = { ...asked, ...retry }
  const unclaimed = {
    ...over,
    attempt: 2,
    origin_run_id: 'first',
    worker_id: '',
    start_time: stop_time,
    claimed_at: stop_time,
  }
  const never = { started_revision: null, unclaimed: planned } as const
  for (const [fact, expected] of [
    [
      { ...cancelled, ...never, was: 'requested' },
      { ...unclaimed, status: 'cancelled' },
    ],
    [
      { ...failed, ...never },
      { ...unclaimed, status: 'failed', ...withError },
    ],
  ] as const)
    assert.equal(docsAfter(runs, [fact]), { run: expected })
})
run('of evaluated code has no function', () => {
  assert.is(docsAfter(runs, [{ ...started, target: { code: '1 + 1' } }])['run']?.fn, null)
})
run('contains its cause', () => {
  const { event_id: _, input_at: __, ...plain } = started
  const doc = docsAfter(runs, [
    { ...plain, origin_run_id: 'o', parent_run_id: 'p', replay_of: 'r', attempt: 3 },
  ])['run']
  assert.equal(
    [doc?.origin_run_id, doc?.parent_run_id, doc?.replay_of, doc?.attempt, doc?.event_id, doc?.input_at],
    ['o', 'p', 'r', 3, null, null],
  )
})
run('that is being imported is on no worker and waits for no retry, because its end follows', () => {
  const metadata = { env_id: 'env', correlation_id: 'c', imported_at: at(9) }
  const imported = (facts: readonly DomainEvent[]) =>
    docsOf(
      runs,
      recorded(facts).map((fact) => ({ ...fact, metadata })),
    )
  const known = imported([started]).get('run')
  assert.equal([known?.status, known?.running_on], ['running', null])
  const failedOne = imported([started, failedForNow]).get('run')
  assert.equal([failedOne?.status, failedOne?.retry_at], ['pending_retry', null])
})
const returned: DomainEvent = { ...asked, returned_by: 'w' }
const reclaimed: EventOf<'RunStarted'> = { ...started, worker_id: 'v', reclaimed: true }
run('that a worker returned still waits, on no worker', () => {
  assert.equal(docsAfter(runs, [started, returned]), { run: { ...running, running_on: null } })
})
run('that a worker returned keeps its place and its start with its next worker', () => {
  const claimed_at = '2026-05-01T09:00:00.500Z'
  const on = { worker_id: 'v', running_on: `v/${running.order}`, claimed_at }
  const later = { ...reclaimed, start_time: claimed_at }
  assert.equal(docsAfter(runs, [started, returned, later]), { run: { ...running, ...on } })
  assert.equal(docsAfter(runs, [started, returned, reclaimed, succeeded])['run']?.status, 'succeeded')
})
run('that was cancelled after a worker returned it is cancelled', () => {
  const facts = [started, returned, { ...cancelled, was: 'requested' }] as const
  assert.is(docsAfter(runs, facts)['run']?.status, 'cancelled')
})
run('was requested when its fact or its id says so, and at its start otherwise', () => {
  const requestedAt = (more: object) => {
    const [doc] = Object.values(docsAfter(runs, [{ ...started, ...more }]))
    return doc?.requested_at
  }
  const run_id = newId()
  const start = (ms: number) => ({ run_id, start_time: isoOf(timeOf(run_id) + ms) })
  assert.is(requestedAt(start(5)), isoOf(timeOf(run_id)))
  assert.is(requestedAt({ ...start(5), requested_at: retry_at }), retry_at)
  assert.is(requestedAt({ ...start(5), attempt: 2 }), start(5).start_time)
  assert.is(requestedAt(start(-5)), start(-5).start_time)
  const tick = derivedId('schedule', 1)
  assert.is(requestedAt({ run_id: tick }), start_time)
})
run('that is a child is found by its parent', () => {
  const doc = docsAfter(runs, [{ ...started, parent_run_id: 'parent' }])['run']
  assert.is(doc?.child_of, `parent/${running.order}`)
})
run('of a schedule is found by its function, and a replay is not', () => {
  const of = (more: object) =>
    docsAfter(runs, [{ ...started, run_type: 'schedule', ...more }])['run']?.of_schedule
  const target = { ns: 'orders', var: 'nightly' }
  assert.is(of({ target, project_id: 'p' }), `p/orders/nightly/${running.order}`)
  assert.is(of({ target, replay_of: 'r' }), null)
  assert.is(of({ target, run_type: 'call' }), null)
})
run('that was only requested is not listed', () => assert.equal(docsAfter(runs, [asked]), {}))
run('is one of many', () => {
  const docs = docsAfter(runs, [started, { ...started, run_id: 'other' }, succeeded])
  assert.equal([docs['run']?.status, docs['other']?.status], ['succeeded', 'running'])
})
run('begins with its start, whatever was stored before', () => beginsWith(runs, started))
run('that is open is kept while its facts may be, and one that ended is not', () => {
  const [doc] = Object.values(docsAfter(runs, [started]))
  const keeps = (before: string, more: object = {}) => {
    const [fact] = recorded([{ type: 'CallsExpired', env_id: 'env', before }])
    const [cleared] = (fact && runs.clears?.(fact)) ?? []
    return cleared?.keeps?.({ ...doc, ...more })
  }
  assert.is(keeps('2026-05-02'), true) // it started on the day before
  assert.is(keeps('2026-05-03'), true)
  assert.is(keeps('2026-05-04'), false)
  for (const status of ['pending_retry', 'running'])
    assert.equal([keeps('2026-05-03', { status }), keeps('2026-05-04', { status })], [true, false])
  assert.is(keeps('2026-05-04', { claimed_at: '2026-05-02T00:00:00.000Z' }), true) // after a worker had returned it
  assert.is(keeps('2026-05-04', { claimed_at: undefined }), true) // a document of an earlier version
  assert.is(keeps('2026-05-02', { status: 'failed' }), false)
  assert.is(keeps('no day'), true)
})

run.run()
