import * as assert from 'uvu/assert'
import { callFunction } from '../../../src/commands/runs/callFunction.ts'
import { cancelRun } from '../../../src/commands/runs/cancelRun.ts'
import { claimRun } from '../../../src/commands/runs/claimRun.ts'
import { claimsOf } from '../../../src/commands/runs/claimsOf.ts'
import { dispatchEvent } from '../../support/dispatchEvent.ts'
import { endRun } from '../../../src/commands/runs/endRun.ts'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { storeRequest } from '../../../src/commands/runs/requestRun.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { isOf, type Recorded } from '../../../src/events/event.ts'
import type { EventOf, EventType } from '../../../src/events/index.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import type { Outcome } from '../../../src/ports/runtime.ts'
import { suite } from '../../support/suite.ts'
import { wanted } from '../../worker/openWorker.ts'
import { openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'

const node = await openCommands()
const { deps } = node
const env = await plantEnv(node, 'acme')
const other = await plantEnv(node, 'other')
const build = await plantBuild(node, env, {
  name: 'shop',
  functions: [
    { ns: 'orders', var: 'ship', on_event: 'order:paid' },
    { ns: 'orders', var: 'thank', on_event: 'order:paid' },
    { ns: 'math', var: 'add' },
  ],
})
const [worker_id, another_id] = [newId(), newId()]

const factsOf = <Type extends EventType>(stream_id: string, type: Type) =>
  Array.fromAsync(node.store.read(streamOf.stream(stream_id))).then((facts) =>
    facts.filter((fact): fact is Recorded<EventOf<Type>> => isOf(fact, type)),
  )

/** Publishes an event and returns it as a delivery has it. */
const publish = async (event_type: string, event_data: unknown = null, caller = env.caller) => {
  const { event } = await publishEvent(deps, { event_type, event_data, source: 'api' }, caller)
  const [published] = await factsOf(event.stream_id, 'EventPublished')
  assert.ok(published)
  return { published, ...event }
}

/** A run that the worker has claimed. */
const claimed = async () => {
  const { published } = await publish('order:paid')
  const [plan] = (await dispatchEvent(deps, { published, worker_id })) ?? []
  assert.ok(plan)
  return plan
}

const dispatching = suite('the dispatch of an event')

dispatching('claims the runs of all its handlers in one append', async () => {
  const { published, stream_id } = await publish('order:paid')
  const plans = await dispatchEvent(deps, { published, worker_id })
  assert.equal(plans?.length, 2)
  assert.equal(await node.typesIn(stream_id), [
    'StreamCreated',
    'EventPublished',
    'EventHandled',
    'RunStarted',
    'RunStarted',
  ])
  const started = await factsOf(stream_id, 'RunStarted')
  assert.equal(new Set(started.map(({ event }) => event.worker_id)), new Set([worker_id]))
})

dispatching('happens once, however often the event is delivered (I3)', async () => {
  const { published, stream_id } = await publish('order:paid')
  await dispatchEvent(deps, { published, worker_id })
  const before = await node.typesIn(stream_id)
  for (const id of [worker_id, another_id])
    assert.is(await dispatchEvent(deps, { published, worker_id: id }), null)
  assert.equal(await node.typesIn(stream_id), before)
})

dispatching('is recorded for an event without handlers, so that its stream is complete', async () => {
  const { published, stream_id } = await publish('order:forgotten')
  assert.equal(await dispatchEvent(deps, { published, worker_id }), [])
  assert.equal(await node.typesIn(stream_id), ['StreamCreated', 'EventPublished', 'EventHandled'])
})

dispatching('starts no handler of another environment', async () => {
  const { published } = await publish('order:paid', null, other.caller)
  assert.equal(await dispatchEvent(deps, { published, worker_id }), [])
})

dispatching('of svc:call starts the run whose id call() returned', async () => {
  const { stream_id } = await publish('order:forgotten')
  const { run_id } = await callFunction(
    deps,
    { ref: 'math/add', args: [1, 2], project_id: build.project_id, stream_id, source: 'run:x' },
    env.caller,
  )
  const published = (await factsOf(stream_id, 'EventPublished')).at(-1)
  assert.ok(published)
  const plans = await dispatchEvent(deps, { published, worker_id })
  assert.equal(
    plans?.map((plan) => [plan.run_id, plan.run_type]),
    [[run_id, 'call']],
  )
})

dispatching('of svc:cancel cancels the run', async () => {
  const { run_id, stream_id } = await claimed()
  const { published } = await publish('svc:cancel', { run_id })
  assert.equal(await dispatchEvent(deps, { published, worker_id }), [])
  const [cancelled] = await factsOf(stream_id, 'RunCancelled')
  assert.is(cancelled?.event.run_id, run_id)
})

dispatching('of svc:replay runs the function again, on the input of the first run', async () => {
  const plan = await claimed()
  await endRun(deps, { plan, outcome: { status: 'succeeded', result: 1 }, worker_id }, env.caller.cause)
  const { published } = await publish('svc:replay', { run_id: plan.run_id })
  const [again] = (await dispatchEvent(deps, { published, worker_id })) ?? []
  assert.equal([again?.replay_of, again?.input_at, again?.target], [plan.run_id, plan.input_at, plan.target])
  assert.not(again?.run_id === plan.run_id)
})

dispatching.run()

const cancelling = suite('the cancelling of a run')

cancelling('does not reach a run of another environment (I7)', async () => {
  const { run_id, stream_id } = await claimed()
  await cancelRun(deps, run_id, other.caller.cause)
  assert.equal(await factsOf(stream_id, 'RunCancelled'), [])
})

cancelling('leaves a run that has ended as it is (I4)', async () => {
  const plan = await claimed()
  await endRun(deps, { plan, outcome: { status: 'succeeded', result: 1 }, worker_id }, env.caller.cause)
  await cancelRun(deps, plan.run_id, env.caller.cause)
  assert.equal(await factsOf(plan.stream_id, 'RunCancelled'), [])
})

cancelling('of an unknown run does nothing', async () => {
  const before = await node.store.head()
  await cancelRun(deps, newId(), env.caller.cause)
  assert.is(await node.store.head(), before)
})

/** Requests a run on a stream of its own and returns the request as a delivery has it. */
const request = async () => {
  const run = { ...wanted(build), cause: env.caller.cause }
  await storeRequest(deps, run)
  const [requested] = await factsOf(run.plan.stream_id, 'RunRequested')
  assert.ok(requested)
  return { run, requested }
}

cancelling('reaches a run that was only requested, in its own environment', async () => {
  const { requested } = await request()
  const { run_id, stream_id } = requested.event
  await cancelRun(deps, run_id, other.caller.cause)
  assert.equal(await factsOf(stream_id, 'RunCancelled'), [])
  await publishEvent(deps, { event_type: 'svc:cancel', event_data: { run_id }, source: 'api' }, env.caller)
  await cancelRun(deps, run_id, env.caller.cause)
  const [fact] = await factsOf(stream_id, 'RunCancelled')
  assert.is(fact?.event.was, 'requested')
  assert.is(await claimRun(deps, { requested, worker_id }), null)
})

/** The read models as they are when a worker claims the run during the first read of a document. */
const claimedDuring = (when: 'before' | 'after', requested: Parameters<typeof claimRun>[1]['requested']) => {
  const { views } = deps
  const claim = async () => {
    if (await claimRun(deps, { requested, worker_id })) await views.settled('runs', 'waitingRuns')
  }
  let reads = 0
  const reader = (name: 'runs' | 'waitingRuns') => ({
    ...views[name],
    async get(run_id: string) {
      const isFirst = reads++ === 0
      if (isFirst && when === 'before') await claim()
      const doc = await views[name].get(run_id)
      if (isFirst && when === 'after') await claim()
      return doc
    },
  })
  return {
    ...deps,
    views: { ...views, runs: reader('runs'), waitingRuns: reader('waitingRuns') } as typeof views,
  }
}

for (const when of ['before', 'after'] as const) {
  cancelling(`reaches a requested run that a worker claims just ${when} it is looked up`, async () => {
    const { requested } = await request()
    const { run_id, stream_id } = requested.event
    await cancelRun(claimedDuring(when, requested), run_id, env.caller.cause)
    assert.is((await factsOf(stream_id, 'RunCancelled'))[0]?.event.was, 'running')
  })

  cancelling(
    `is accepted for a requested run that a worker claims just ${when} it is looked up`,
    async () => {
      const { requested } = await request()
      const event = {
        event_type: 'svc:cancel',
        event_data: { run_id: requested.event.run_id },
        source: 'api',
      }
      await publishEvent(claimedDuring(when, requested), event, env.caller)
    },
  )
}

/** Calls `math/add` from a run; no worker has handled the call yet. */
const calledBy = async (stream_id: string, args: readonly unknown[] = [1, 2]) => {
  const call = { ref: 'math/add', args, project_id: build.project_id, stream_id, source: 'run:x' }
  const { event_id, run_id } = await callFunction(deps, call, env.caller)
  const published = (await factsOf(stream_id, 'EventPublished')).find(
    ({ event }) => event.event_id === event_id,
  )
  assert.ok(published)
  return { run_id, published }
}

for (const [what, args] of [
  ['a call', [1, 2]],
  ['a call with large arguments', ['x'.repeat(100_000)]],
] as const) {
  cancelling(`reaches ${what} that no worker has handled`, async () => {
    const { stream_id } = await publish('nothing')
    const { run_id, published } = await calledBy(stream_id, args)
    const event = { event_type: 'svc:cancel', event_data: { run_id }, source: 'api' }
    await publishEvent(deps, event, env.caller)
    await cancelRun(deps, run_id, env.caller.cause)
    assert.is(await dispatchEvent(deps, { published, worker_id }), null)
    assert.equal(await factsOf(stream_id, 'RunStarted'), [])
    assert.is((await factsOf(stream_id, 'EventHandled')).at(-1)?.event.error?.code, 'cancelled')
  })
}

cancelling('reaches the attempt that replaced a lost one, and happens once', async () => {
  const plan = await claimed()
  const { published } = await publish('svc:cancel', { run_id: plan.run_id })
  const lost: Outcome = { status: 'lost', error: { code: 'worker_lost', message: 'lost' } }
  await endRun(deps, { plan, outcome: lost, worker_id }, env.caller.cause)
  const [requested] = await factsOf(plan.stream_id, 'RunRequested')
  assert.ok(requested)
  const next = await claimRun(deps, { requested, worker_id })
  assert.ok(next)
  assert.equal(await dispatchEvent(deps, { published, worker_id }), [])
  assert.is(await dispatchEvent(deps, { published, worker_id }), null)
  const cancelled = await factsOf(plan.stream_id, 'RunCancelled')
  assert.equal(
    cancelled.map(({ event }) => [event.run_id, event.was]),
    [[next.run_id, 'running']],
  )
})

cancelling(
  'leaves the document of a retry that no worker had claimed, which the failed run names',
  async () => {
    const plan = await claimed()
    const lost: Outcome = { status: 'lost', error: { code: 'worker_lost', message: 'lost' } }
    await endRun(deps, { plan, outcome: lost, worker_id }, env.caller.cause)
    await cancelRun(deps, plan.run_id, env.caller.cause)
    await node.views.settled('runs')
    const failed = await node.views.runs.get(plan.run_id)
    const retry = await node.views.runs.get(failed?.retried_by ?? '')
    assert.equal(
      [retry?.status, retry?.attempt, retry?.origin_run_id, retry?.fn, retry?.env_id],
      ['cancelled', 2, plan.run_id, failed?.fn, env.env_id],
    )
  },
)

cancelling('reaches the run of a call that a worker handles at the same time', async () => {
  const { stream_id } = await publish('nothing')
  const { run_id, published } = await calledBy(stream_id)
  await Promise.all([
    cancelRun(deps, run_id, env.caller.cause),
    dispatchEvent(deps, { published, worker_id }),
  ])
  const types = await node.typesIn(stream_id)
  assert.is(types.includes('RunStarted'), types.includes('RunCancelled'))
})

cancelling('reaches no call of another environment (I7)', async () => {
  const { stream_id } = await publish('nothing')
  const { run_id, published } = await calledBy(stream_id)
  await cancelRun(deps, run_id, other.caller.cause)
  assert.equal((await dispatchEvent(deps, { published, worker_id }))?.length, 1)
  const event = { event_type: 'svc:cancel', event_data: { run_id: newId() }, source: 'api' }
  await refusedWith('not_found', () => publishEvent(deps, event, env.caller))
})

cancelling.run()

const claiming = suite('the claim of a requested run')

claiming(
  'succeeds once, although it is delivered to its worker again after the run has ended (I3)',
  async () => {
    const { requested } = await request()
    const plan = await claimRun(deps, { requested, worker_id })
    assert.ok(plan)
    await endRun(deps, { plan, outcome: succeeded(1), worker_id }, env.caller.cause)
    const later = { ...deps, aggregates: openAggregates(node.store) } // nothing of the stream is in memory any more
    assert.is(await claimRun(later, { requested, worker_id }), null)
    assert.is((await factsOf(plan.stream_id, 'RunStarted')).length, 1)
  },
)

claiming('belongs to one worker (I3)', async () => {
  const { requested, run } = await request()
  const plans = await Promise.all(
    [worker_id, another_id].map((id) => claimRun(deps, { requested, worker_id: id })),
  )
  assert.is(plans.filter((plan) => plan !== null).length, 1)
  assert.is((await factsOf(run.plan.stream_id, 'RunStarted')).length, 1)
})

claiming('can be part of its request; a later request of the same run stores nothing', async () => {
  const run = { ...wanted(build), cause: env.caller.cause }
  assert.ok(await storeRequest(deps, run, worker_id))
  assert.is(await storeRequest(deps, run, another_id), null)
  assert.equal(await node.typesIn(run.plan.stream_id), ['StreamCreated', 'RunRequested', 'RunStarted'])
})

claiming('is found again by its worker, and by no other', async () => {
  const { requested, run } = await request()
  await claimRun(deps, { requested, worker_id })
  const { stream_id, run_id } = run.plan
  assert.equal(
    (await claimsOf(deps, { stream_id, worker_id })).map((plan) => plan.run_id),
    [run_id],
  )
  assert.equal(await claimsOf(deps, { stream_id, worker_id: another_id }), [])
})

claiming.run()

const succeeded = (result: unknown): Outcome => ({ status: 'succeeded', result })
const failed: Outcome = { status: 'failed', error: { code: 'function_failed', message: 'broke' } }

const ending = suite('the end of a run')
ending.after(() => node.close())

ending('is the first one that is stored (I4)', async () => {
  const plan = await claimed()
  await endRun(deps, { plan, outcome: failed, worker_id }, env.caller.cause)
  await endRun(deps, { plan, outcome: succeeded(1), worker_id }, env.caller.cause)
  assert.is((await factsOf(plan.stream_id, 'RunFailed')).length, 1)
  assert.equal(await factsOf(plan.stream_id, 'RunSucceeded'), [])
})

for (const [outcome, type] of [
  [failed, 'RunFailed'],
  [succeeded(1), 'RunSucceeded'],
] as const)
  ending(`cannot be a ${type} that another worker reports`, async () => {
    const plan = await claimed()
    await endRun(deps, { plan, outcome, worker_id: another_id }, env.caller.cause)
    assert.equal(await factsOf(plan.stream_id, type), [])
  })

ending('is a failure when its result cannot be converted to JSON', async () => {
  const plan = await claimed()
  await endRun(deps, { plan, outcome: succeeded(1n), worker_id }, env.caller.cause)
  const [fact] = await factsOf(plan.stream_id, 'RunFailed')
  assert.is(fact?.event.error.code, 'result_not_serializable')
})

ending('keeps a result over 64 KiB out of the log', async () => {
  const plan = await claimed()
  await endRun(deps, { plan, outcome: succeeded('x'.repeat(100_000)), worker_id }, env.caller.cause)
  const [fact] = await factsOf(plan.stream_id, 'RunSucceeded')
  assert.is(fact?.event.result, undefined)
  assert.is(fact?.event.result_ref?.size, 100_002)
})

ending('without a result has the result null', async () => {
  const plan = await claimed()
  await endRun(deps, { plan, outcome: succeeded(undefined), worker_id }, env.caller.cause)
  const [fact] = await factsOf(plan.stream_id, 'RunSucceeded')
  assert.is(fact?.event.result, null)
})

ending.run()
