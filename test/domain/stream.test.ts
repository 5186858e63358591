import * as assert from 'uvu/assert'
import { isIdle, stream } from '../../src/domain/stream.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { derivedIdBeside } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'
import {
  asked,
  cancelled,
  created,
  error,
  failed,
  failedForNow,
  given,
  handled,
  now,
  plan,
  published,
  requested,
  retried as retrying,
  running,
  runningWithRetry,
  started,
  succeeded,
} from './streamFacts.ts'

/** The id of an event that was published under an `Idempotency-Key` at this time, milliseconds since 1970. */
const keyedAt = (ms: number, what: string): string => {
  const time = ms.toString(16).padStart(12, '0')
  return derivedIdBeside(`${time.slice(0, 8)}-${time.slice(8)}-7000-be21-1748e5bd2d51`, what)
}
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

const copying = suite('a copy of the state of a stream')
copying('stays as it is, whatever is stored next', () => {
  const facts = [
    created,
    { ...published, event_id: keyedAt(1000, 'first') },
    published,
    ...['run', 'second', 'third'].map((run_id) => started({ ...retrying, run_id })),
    handled,
    failedForNow,
    { ...succeeded, run_id: 'second' },
  ].map((event, revision) => ({ event, revision, metadata: { env_id: 'env', correlation_id: 'c' } }))
  for (const [n, next] of facts.entries()) {
    const state = facts.slice(0, n).reduce(stream.evolve, stream.initial())
    const copy = stream.copyOf?.(state)
    const before = structuredClone(state)
    assert.equal(copy, before)
    assert.not.equal(stream.evolve(state, next), before)
    assert.equal(copy, before, `after ${next.event.type}`)
  }
})
copying.run()

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
publishing(
  'under a key is not done again after many other keyed events, without a look at the earlier facts',
  () => {
    const first = keyedAt(1000, 'first')
    const others = Array.from({ length: 100 }, (_, n) => keyedAt(1001 + n, 'other'))
    const facts = [first, ...others].map((event_id) => ({ ...published, event_id }))
    const again = { ...publish(), event_id: first }
    given(created, ...facts)
      .when(again)
      .refuses('conflict')
    given(created, ...facts)
      .when({ ...again, absent_to: 1 })
      .refuses('conflict')
    given(created, ...facts)
      .when({ ...again, absent_to: 101 })
      .then({ ...published, event_id: first })
    given(created, ...facts)
      .when({ ...again, event_id: others.at(-1) ?? '' })
      .then()
  },
)
publishing('under a new key needs no look at the earlier facts of a busy stream', () => {
  const others = Array.from({ length: 100 }, (_, n) => keyedAt(1001 + n, 'other'))
  const event_id = keyedAt(1101, 'new')
  given(created, ...others.map((event_id) => ({ ...published, event_id })))
    .when({ ...publish(), event_id })
    .then({ ...published, event_id })
})
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
publishing('by a run is refused before it starts and after its end', () => {
  const sent = { ...publish(), by_run_id: 'run', event_id: 'sent' }
  given(...running)
    .when(sent)
    .then({ ...published, event_id: 'sent' })
  given(created, requested).when(sent).refuses('conflict')
  for (const end of [succeeded, failed, cancelled])
    given(...running, end)
      .when(sent)
      .refuses('conflict')
})
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
const [one, two, three] = ['one', 'two', 'three'].map((run_id) => ({ ...plan, event_id: 'event', run_id }))
assert.ok(one && two && three)
const part = { type: 'ClaimPart', event_id: 'event', plans: [one, two], worker_id: 'worker', now } as const
dispatching('may claim a part of the runs before, each of them once', () => {
  given(created, published).when(part).then(started(one), started(two))
  given(created, published, started(one)).when(part).then(started(two))
  given(created, published, started(one), { ...succeeded, run_id: 'one' })
    .when({ ...part, worker_id: 'other' })
    .then(started(two, 'other'))
  given(...running)
    .when(part)
    .then()
})
dispatching('claims what is left and names all runs', () =>
  given(created, published, started(one, 'other'), started(two))
    .when({ ...dispatch, plans: [two, three] })
    .then({ ...handled, run_ids: ['one', 'two', 'three'] }, started(three)),
)
dispatching('names no retry of a run that was claimed before', () => {
  const again = { ...one, run_id: 'again', attempt: 2, origin_run_id: 'one' }
  given(created, published, started(one), started(again))
    .when({ ...dispatch, plans: [two] })
    .then({ ...handled, run_ids: ['one', 'two'] }, started(two))
})
dispatching('names ten thousand runs and the number of all, so that the fact fits into an append', () => {
  const before = Array.from({ length: 40_000 }, (_, n) => ({ ...one, run_id: `run ${n}` }))
  const claimed = before.map((each) => started(each))
  const run_ids = before.slice(0, 10_000).map(({ run_id }) => run_id)
  given(created, published, ...claimed)
    .when({ ...dispatch, plans: [two] })
    .then({ ...handled, run_ids, runs: 40_001 }, started(two))
  given(created, published, ...claimed)
    .when({ type: 'AbandonEvent', stream_id: 's', event_id: 'event', error })
    .then({ ...handled, run_ids, runs: 40_000, error })
  given(created, published, ...claimed.slice(0, 9999))
    .when({ ...dispatch, plans: [two] })
    .then({ ...handled, run_ids: [...run_ids.slice(0, 9999), 'two'] }, started(two))
})
dispatching('stores nothing for an event that does not exist', () => given(created).when(dispatch).then())
dispatching(
  'that a defect prevents is recorded with the reason, unless the event was dispatched meanwhile',
  () => {
    const abandon = { type: 'AbandonEvent', stream_id: 's', event_id: 'event', error } as const
    given(created, published)
      .when(abandon)
      .then({ ...handled, run_ids: [], error })
    given(created, published, started({ ...plan, event_id: 'event' }))
      .when(abandon)
      .then({ ...handled, run_ids: ['run'], error })
    given(...running)
      .when(abandon)
      .then()
    given(created).when(abandon).then()
  },
)
dispatching.run()

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
requesting('a child run is refused when its parent is not running', () => {
  const child = { ...request, plan: { ...asked, run_id: 'child', parent_run_id: 'run' } }
  given(...running)
    .when(child)
    .then({ type: 'RunRequested', ...child.plan })
  for (const end of [succeeded, failed, cancelled])
    given(...running, end)
      .when(child)
      .refuses('conflict')
})
requesting.run()

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
