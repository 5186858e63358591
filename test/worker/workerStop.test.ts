import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { AppError } from '../../src/errors.ts'
import { streamOf } from '../../src/events/streams.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { storeRequest } from '../../src/commands/runs/requestRun.ts'
import { cause, type Node, openNode } from '../support/openNode.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wanted, wantedCall } from './openWorker.ts'

/** The store, with the deliveries to its consumers counted. */
const countDeliveries = (store: EventStore) => {
  const seen = { deliveries: 0 }
  const counting = forwarding(store, {
    async *consume(...args) {
      for await (const delivery of store.consume(...args)) {
        seen.deliveries++
        yield delivery
      }
    },
  })
  return { seen, counting }
}

const stopping = suite('a worker that stops')

stopping('leaves waiting events to the next worker', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const { seen, counting } = countDeliveries(node.store)
  const { worker, held } = openWorker(node, { maxConcurrentRuns: 1 }, counting)
  const [first, second] = [wanted(build), wanted(build)]
  await storeRequest(node, first)
  await worker.start()
  await until(() => held.length === 1)
  await storeRequest(node, second)
  await until(() => seen.deliveries === 2) // the worker has it in hand and no place for it
  await worker.stop({ drainMs: 10 })
  await until(async () => (await node.typesIn(first.plan.stream_id)).includes('RunFailed'))
  assert.equal(await node.typesIn(second.plan.stream_id), ['StreamCreated', 'RunRequested'])
  await node.close()
})

const factsIn = async ({ store }: Node, stream_id: string) =>
  (await Array.fromAsync(store.read(streamOf.stream(stream_id)))).map(({ event }) => event)
const lifeOf = async ({ store }: Node, worker_id: string) =>
  (await Array.fromAsync(store.read(streamOf.worker(worker_id)))).map(({ event }) => event.type)

stopping('returns claimed runs whose code has not begun, and another worker executes them', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const { worker, invocations } = openWorker(node, { begins: false })
  await worker.start()
  const run = wanted(build)
  await worker.take(run)
  await until(() => invocations.length === 1)
  await worker.stop()
  assert.equal(await node.typesIn(run.plan.stream_id), [
    'StreamCreated',
    'RunRequested',
    'RunStarted',
    'RunRequested',
  ])
  assert.equal(await lifeOf(node, worker.worker_id), ['WorkerStarted', 'WorkerStopped'])
  const other = openWorker(node)
  await other.worker.start()
  await until(() => other.held.length === 1)
  other.held[0]?.({ status: 'succeeded', result: 7 })
  await until(async () => (await node.typesIn(run.plan.stream_id)).includes('RunSucceeded'))
  await node.views.settled()
  const doc = await node.views.runs.get(run.plan.run_id)
  assert.equal(
    [doc?.status, doc?.result, doc?.attempt, doc?.worker_id],
    ['succeeded', 7, 1, other.worker.worker_id],
  )
  await other.worker.stop()
  await node.close()
})

stopping('waits for a claim in progress, and returns its run', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const run = wanted(build)
  const reply = Promise.withResolvers<void>()
  let claims = 0
  const slow = forwarding(node.store, {
    async append(stream, events, expected) {
      const isClaim = events.some(({ event }) => event.type === 'RunStarted')
      if (isClaim && claims++ === 0) await reply.promise
      return node.store.append(stream, events, expected)
    },
  })
  const { worker, invocations } = openWorker({ ...node, aggregates: openAggregates(slow) }, {}, slow)
  await worker.start()
  await storeRequest(node, run)
  await until(() => claims === 1)
  const stopped = worker.stop()
  reply.resolve()
  await stopped
  assert.is((await node.typesIn(run.plan.stream_id)).at(-1), 'RunRequested')
  assert.is(invocations.length, 0)
  assert.equal(await lifeOf(node, worker.worker_id), ['WorkerStarted', 'WorkerStopped'])
  await node.close()
})

stopping('waits for runs in progress, and for the child runs that they begin meanwhile', async () => {
  const node = await openNode()
  const build = await deployBuild(node, undefined, [{ ns: 'a', var: 'b' }])
  const { worker, held, invocations } = openWorker(node)
  await worker.start()
  const parent = wantedCall(build)
  await worker.take(parent)
  await until(() => held.length === 1)
  const stopped = worker.stop()
  const result = invocations[0]?.onHostCall({ op: 'run', fn: 'a/b', args: [] }, () => {})
  await until(() => held.length === 2)
  held[1]?.({ status: 'succeeded', result: 'from the child' })
  assert.is(await result, 'from the child')
  held[0]?.({ status: 'succeeded', result: 'done' })
  await stopped
  const ends = (await factsIn(node, parent.plan.stream_id)).filter(({ type }) => type === 'RunSucceeded')
  assert.is(ends.length, 2)
  assert.equal(await lifeOf(node, worker.worker_id), ['WorkerStarted', 'WorkerStopped'])
  await node.close()
})

stopping('that must end a run in progress requests its next attempt', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const { worker, held } = openWorker(node)
  await worker.start()
  const run = wantedCall(build)
  await worker.take(run)
  await until(() => held.length === 1)
  await worker.stop({ drainMs: 10 })
  const facts = await factsIn(node, run.plan.stream_id)
  assert.equal(facts.map(({ type }) => type).slice(2), [
    'RunStarted',
    'RunFailed',
    'RunRetried',
    'RunRequested',
  ])
  assert.equal(await lifeOf(node, worker.worker_id), ['WorkerStarted', 'WorkerStopped'])
  await node.close()
})

stopping('tells a run in progress meanwhile that it was cancelled', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const { worker, invocations } = openWorker(node)
  await worker.start()
  const { plan, ...run } = wanted(build)
  await worker.take({ plan, ...run })
  await until(() => invocations.length === 1)
  const stopped = worker.stop({ drainMs: 600_000 })
  const cancel = { type: 'CancelRun', run_id: plan.run_id, now: clock.iso() } as const
  await node.aggregates.streams.handle(streamOf.stream(plan.stream_id), cancel, cause)
  await until(() => invocations[0]?.signal.aborted)
  await stopped
  assert.is((await node.typesIn(plan.stream_id)).at(-1), 'RunCancelled')
  assert.equal(await lifeOf(node, worker.worker_id), ['WorkerStarted', 'WorkerStopped'])
  await node.close()
})

stopping('ends its runs when it is declared lost meanwhile, and takes no new id', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const ids: string[] = []
  const { worker, invocations } = openWorker(node, { onIdentity: (worker_id) => void ids.push(worker_id) })
  await worker.start()
  await worker.take(wantedCall(build))
  await until(() => invocations.length === 1)
  const stopped = worker.stop({ drainMs: 600_000 })
  const { worker_id } = worker
  const lose = { type: 'LoseWorker', worker_id, now: clock.iso() } as const
  await node.aggregates.workers.handle(streamOf.worker(worker_id), lose, { correlation_id: worker_id })
  await until(() => invocations[0]?.signal.aborted)
  await stopped
  assert.equal(ids, [worker_id])
  assert.equal(await lifeOf(node, worker_id), ['WorkerStarted', 'WorkerLost'])
  await node.close()
})

stopping('does not say that it stopped while the end of a run is not stored', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const run = wanted(build)
  const broken = forwarding(node.store, {
    append(stream, events, expected) {
      if (events.some(({ event }) => event.type === 'RunFailed'))
        return Promise.reject(new AppError('unavailable', 'the store refuses'))
      return node.store.append(stream, events, expected)
    },
  })
  const { worker, held } = openWorker({ ...node, aggregates: openAggregates(broken) }, {}, broken)
  await worker.start()
  await worker.take(run)
  await until(() => held.length === 1)
  await worker.stop({ drainMs: 10 })
  assert.equal(await lifeOf(node, worker.worker_id), ['WorkerStarted'])
  assert.is((await node.typesIn(run.plan.stream_id)).at(-1), 'RunStarted')
  await node.close()
})

stopping.run()
