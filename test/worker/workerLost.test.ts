import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { isOf } from '../../src/events/event.ts'
import type { EventOf } from '../../src/events/index.ts'
import { streamOf } from '../../src/events/streams.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { AppError } from '../../src/errors.ts'
import { storeRequest } from '../../src/commands/runs/requestRun.ts'
import { returnRun } from '../../src/commands/runs/returnRun.ts'
import { newId } from '../../src/ids.ts'
import { forwarding } from '../support/forwarding.ts'
import { cause, type Node, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wanted, wantedCall } from './openWorker.ts'
import { withLateLoss } from './withLateLoss.ts'

const lost = suite('a worker that was given up though it lives')

lost('ends its remaining runs as lost, and continues under a new id (W5)', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const ids: string[] = []
  const { worker, held } = openWorker(node, { onIdentity: (worker_id) => void ids.push(worker_id) })
  await worker.start()
  const [before, after] = [wanted(build), wanted(build)]
  await worker.take(before)
  await until(() => held.length === 1)
  const [first = ''] = ids
  await node.aggregates.workers.handle(
    streamOf.worker(first),
    { type: 'LoseWorker', worker_id: first, now: clock.iso() },
    { correlation_id: first },
  )
  const factsOf = async (stream_id: string) =>
    (await Array.fromAsync(node.store.read(streamOf.stream(stream_id)))).map(({ event }) => event)
  const failed = await until(async () =>
    (await factsOf(before.plan.stream_id)).find(({ type }) => type === 'RunFailed'),
  )
  assert.is((failed as EventOf<'RunFailed'>).error.code, 'worker_lost')
  assert.is(ids.length, 2)
  await worker.take(after)
  await until(() => held.length === 2)
  const started = (await factsOf(after.plan.stream_id)).find(({ type }) => type === 'RunStarted')
  assert.is((started as EventOf<'RunStarted'>).worker_id, ids[1])
  await worker.stop({ drainMs: 10 })
  await node.close()
})

/** Declares the worker lost, as recovery does. */
const loseIt = ({ aggregates }: Node, worker_id: string) =>
  aggregates.workers.handle(
    streamOf.worker(worker_id),
    { type: 'LoseWorker', worker_id, now: clock.iso() },
    { correlation_id: worker_id },
  )

lost('claims nothing until its new id is registered, however long that takes (W5)', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const ids: string[] = []
  let refused = 0
  const away = new AbortController()
  const broken = forwarding(node.store, {
    append(stream, events, expected) {
      const isNext = events.some(({ event }) => event.type === 'WorkerStarted') && ids.length > 1
      if (!isNext || away.signal.aborted) return node.store.append(stream, events, expected)
      refused++
      return Promise.reject(new AppError('unavailable', 'the store does not answer'))
    },
  })
  const { worker, held } = openWorker(
    { ...node, aggregates: openAggregates(broken) },
    { onIdentity: (worker_id) => void ids.push(worker_id) },
    broken,
  )
  await worker.start()
  await loseIt(node, ids[0] ?? '')
  await until(() => refused > 1)
  const run = wanted(build)
  await storeRequest(node, run)
  assert.equal([worker.isOpen, worker.hasRoom('env')], [false, false])
  away.abort()
  await until(() => held.length === 1)
  const [registered] = await Array.fromAsync(node.store.read(streamOf.worker(worker.worker_id)))
  const facts = await Array.fromAsync(node.store.read(streamOf.stream(run.plan.stream_id)))
  const claim = facts.find((fact) => isOf(fact, 'RunStarted'))
  assert.ok(registered && claim && registered.cursor < claim.cursor)
  assert.is(claim.event.worker_id, worker.worker_id)
  await worker.stop({ drainMs: 10 })
  await node.close()
})

lost(
  'takes another id if the one that it registers was declared lost before it got the reply (W5)',
  async () => {
    const node = await openNode()
    const build = await deployBuild(node)
    const ids: string[] = []
    const back = new AbortController()
    let isStored = false
    const broken = forwarding(node.store, {
      async append(stream, events, expected) {
        const isNext = events.some(({ event }) => event.type === 'WorkerStarted') && ids.length > 1
        const appended = await node.store.append(stream, events, expected)
        if (!isNext || back.signal.aborted) return appended
        isStored = true
        throw new AppError('unavailable', 'the reply was lost')
      },
      async *read(stream, options) {
        if (isStored && stream === streamOf.worker(ids[1] ?? '') && !back.signal.aborted)
          throw new AppError('unavailable', 'the store does not answer')
        yield* node.store.read(stream, options)
      },
    })
    const { worker, held } = openWorker(
      { ...node, aggregates: openAggregates(broken) },
      { onIdentity: (worker_id) => void ids.push(worker_id) },
      broken,
    )
    await worker.start()
    await loseIt(node, ids[0] ?? '')
    await until(() => isStored)
    await loseIt(node, ids[1] ?? '')
    back.abort()
    await until(() => worker.isOpen)
    const run = wanted(build)
    await worker.take(run)
    await until(() => held.length === 1)
    const facts = await Array.fromAsync(node.store.read(streamOf.stream(run.plan.stream_id)))
    const claim = facts.find((fact) => isOf(fact, 'RunStarted'))
    assert.ok(claim)
    assert.equal(await lifeOf(node, claim.event.worker_id), ['WorkerStarted'])
    await worker.stop({ drainMs: 10 })
    await node.close()
  },
)

lost('takes another id if the one that it registers was declared lost while it was paused (W5)', async () => {
  const node = await openNode()
  const ids: string[] = []
  const paused = Promise.withResolvers<void>()
  let isStored = false
  const slow = forwarding(node.store, {
    async append(stream, events, expected) {
      const isNext = events.some(({ event }) => event.type === 'WorkerStarted') && ids.length === 2
      const appended = await node.store.append(stream, events, expected)
      if (isNext) {
        isStored = true
        await paused.promise
      }
      return appended
    },
    async *subscribe(options) {
      for await (const batch of node.store.subscribe(options)) {
        yield batch
        for (const { event } of batch.events)
          if (event.type === 'WorkerLost' && event.worker_id === ids[1]) paused.resolve()
      }
    },
  })
  const { worker } = openWorker(
    { ...node, aggregates: openAggregates(slow) },
    { onIdentity: (worker_id) => void ids.push(worker_id) },
    slow,
  )
  await worker.start()
  await loseIt(node, ids[0] ?? '')
  await until(() => isStored)
  await loseIt(node, ids[1] ?? '')
  await until(() => worker.isOpen)
  assert.equal(await lifeOf(node, worker.worker_id), ['WorkerStarted'])
  await worker.stop({ drainMs: 10 })
  await node.close()
})

/** A worker whose heartbeats are stored until `cutOff` is called, and again after `stored`. */
const openCutOff = async (node: Node) => {
  const ids: string[] = []
  const stored = Promise.withResolvers<void>()
  let isCutOff = false
  const opened = openWorker(node, {
    onIdentity: (worker_id) => {
      ids.push(worker_id)
      return isCutOff ? stored.promise : undefined
    },
  })
  await opened.worker.start()
  return { ...opened, ids, cutOff: () => void (isCutOff = true), stored: stored.resolve }
}

lost('claims nothing until a heartbeat of its new id is stored (W5)', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const { worker, held, ids, cutOff, stored } = await openCutOff(node)
  cutOff()
  await loseIt(node, worker.worker_id)
  await until(() => ids.length === 2)
  const run = wanted(build)
  await storeRequest(node, run)
  await node.views.settled() // it could register and claim meanwhile
  assert.equal([worker.isOpen, worker.hasRoom('env')], [false, false])
  assert.equal(await lifeOf(node, ids[1] ?? ''), [])
  stored()
  await until(() => held.length === 1)
  const facts = await Array.fromAsync(node.store.read(streamOf.stream(run.plan.stream_id)))
  assert.equal(
    facts.filter((fact) => isOf(fact, 'RunStarted')).map(({ event }) => event.worker_id),
    [ids[1]],
  )
  assert.equal([ids.length, await lifeOf(node, ids[1] ?? '')], [2, ['WorkerStarted']])
  await worker.stop({ drainMs: 10 })
  await node.close()
})

lost('takes no new id if it stops before a heartbeat of that id is stored (W5)', async () => {
  const node = await openNode()
  const { worker, ids, cutOff, stored } = await openCutOff(node)
  cutOff()
  await loseIt(node, worker.worker_id)
  await until(() => ids.length === 2)
  await worker.stop({ drainMs: 10 })
  stored()
  await deployBuild(node) // it could register meanwhile
  assert.equal([worker.isOpen, worker.worker_id], [false, ids[0]])
  assert.equal(await lifeOf(node, ids[1] ?? ''), [])
  await node.close()
})

lost('does not start before a heartbeat of its id is stored, and can be stopped meanwhile (W5)', async () => {
  const node = await openNode()
  const stopping = new AbortController()
  const asked = Promise.withResolvers<string>()
  const { worker } = openWorker(node, {
    onIdentity: (worker_id) => {
      asked.resolve(worker_id)
      return new Promise(() => {})
    },
  })
  const started = worker.start(stopping.signal)
  const id = await asked.promise
  stopping.abort()
  assert.is(await started.catch(({ code }: AppError) => code), 'unavailable')
  assert.equal(await lifeOf(node, id), [])
  await worker.stop({ drainMs: 10 })
  await node.close()
})

const lifeOf = async ({ store }: Node, worker_id: string): Promise<string[]> =>
  (await Array.fromAsync(store.read(streamOf.worker(worker_id)))).map(({ event }) => event.type)

lost('returns the runs whose code has not begun, and may claim them again', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const ids: string[] = []
  const { worker, invocations } = openWorker(node, {
    begins: false,
    onIdentity: (worker_id) => void ids.push(worker_id),
  })
  await worker.start()
  const run = wanted(build)
  await worker.take(run)
  await until(() => invocations.length === 1)
  await loseIt(node, ids[0] ?? '')
  await until(() => invocations.length === 2)
  assert.equal((await node.typesIn(run.plan.stream_id)).slice(2), [
    'RunStarted',
    'RunRequested',
    'RunStarted',
  ])
  assert.equal(
    invocations.map(({ run: { run_id } }) => run_id),
    [run.plan.run_id, run.plan.run_id],
  )
  await worker.stop({ drainMs: 10 })
  await node.close()
})

/** A worker that is cut off from the log after `cutOff`. First it receives that it was declared lost, then its deliveries. */
const openDeaf = async (node: Node) => {
  const [heard, delivered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isCutOff = false
  const store = forwarding(node.store, {
    ...withLateLoss(node.store, heard.promise, () => isCutOff),
    async *consume(...args) {
      for await (const delivery of node.store.consume(...args)) {
        if (isCutOff) await delivered.promise
        yield delivery
      }
    },
  })
  const opened = openWorker(node, { begins: false }, store)
  await opened.worker.start()
  const { worker_id } = opened.worker
  return {
    ...opened,
    cutOff: () => void (isCutOff = true),
    comesBack: async () => {
      heard.resolve()
      await until(() => opened.worker.isOpen && opened.worker.worker_id !== worker_id)
      delivered.resolve()
    },
  }
}

for (const claimed of ['with its request', 'when it is delivered'] as const)
  lost(`claims a run again that recovery returned before it knew, if it was claimed ${claimed}`, async () => {
    const node = await openNode()
    const { aggregates } = node
    const build = await deployBuild(node)
    const { worker, invocations, cutOff, comesBack } = await openDeaf(node)
    const { worker_id } = worker
    const call = wantedCall(build)
    const run = { ...call, plan: { ...call.plan, once: true, marks_begin: true } }
    const { run_id, stream_id } = run.plan
    await (claimed === 'with its request' ? worker.take(run) : storeRequest(node, run))
    await until(() => invocations.length === 1)
    cutOff()
    await loseIt(node, worker_id)
    const error = { code: 'worker_lost', message: 'lost' }
    const lose = { type: 'LoseRun', run_id, worker_id, error, now: clock.iso() } as const
    await aggregates.streams.handle(streamOf.stream(stream_id), lose, cause) // as recovery does
    const loaded = Promise.resolve(invocations[0]?.loadInput())
    assert.is(await loaded.catch(({ code }: AppError) => code), 'not_found')
    await until(() => worker.runs.counts.waiting === 0)
    await comesBack()
    await until(() => invocations.length === 2)
    assert.equal((await node.typesIn(stream_id)).slice(2), ['RunStarted', 'RunRequested', 'RunStarted'])
    assert.is(invocations[1]?.run.run_id, run_id)
    await worker.stop({ drainMs: 10 })
    await node.close()
  })

/** Views whose first answer about a build is held until `answer` is called. */
const holdingBuilds = ({ views }: Node) => {
  const { promise, resolve: answer } = Promise.withResolvers<void>()
  const seen = { asked: 0 }
  const build = { env_id: cause.env_id, hash: 'a'.repeat(64) }
  const get = async () => {
    if (++seen.asked === 1) await promise
    return build
  }
  const builds = { ...views.builds, get } as unknown as Node['views']['builds']
  return { views: { ...views, builds }, seen, answer }
}

/** A store that counts the claims that its worker has begun to execute, and those that it has seen in the log. */
const countingClaims = ({ store }: Node) => {
  const claims = { acknowledged: 0, seen: 0 }
  const counting = forwarding(store, {
    async *consume(...args) {
      for await (const { event, ack, ...delivery } of store.consume(...args)) {
        const counted = () => {
          ack()
          claims.acknowledged++
        }
        yield { ...delivery, event, ack: counted }
      }
    },
    async *subscribe(options) {
      for await (const batch of store.subscribe(options)) {
        yield batch
        claims.seen += batch.events.filter(({ event }) => event.type === 'RunStarted').length
      }
    },
  })
  return { store: counting, claims }
}

lost(
  'executes a run that it claims again while the build of the first claim is still being read',
  async () => {
    const node = await openNode()
    const { project_id } = await deployBuild(node)
    const ids: string[] = []
    const { views, seen, answer } = holdingBuilds(node)
    const { store, claims } = countingClaims(node)
    const { worker, invocations } = openWorker(
      { ...node, views },
      { onIdentity: (worker_id) => void ids.push(worker_id) },
      store,
    )
    await worker.start()
    const run = wanted({ project_id, build_id: newId() }) // its build is not deployed
    const { plan } = run
    await storeRequest(node, run)
    await until(() => seen.asked === 1)
    await loseIt(node, ids[0] ?? '')
    await returnRun(node, { plan, worker_id: ids[0] ?? '' }, cause) // as recovery does
    await until(() => claims.acknowledged === 2 && claims.seen === 2)
    answer()
    await until(() => invocations.length === 1)
    assert.equal((await node.typesIn(plan.stream_id)).slice(2), ['RunStarted', 'RunRequested', 'RunStarted'])
    await worker.stop({ drainMs: 10 })
    await node.close()
  },
)

lost.run()
