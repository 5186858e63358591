import * as assert from 'uvu/assert'
import type { EventOf } from '../../../src/events/index.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { runsOn } from '../../../src/projections/runs.ts'
import type { Collection, Doc } from '../../../src/ports/readModels.ts'
import { AppError } from '../../../src/errors.ts'
import { deadWorkers } from '../../../src/commands/runs/deadWorkers.ts'
import { loseWorker } from '../../../src/commands/runs/loseWorker.ts'
import { suite } from '../../support/suite.ts'
import { now, type Node, openNode, startRun } from '../../support/openNode.ts'

const startWorker = async ({ aggregates }: Node): Promise<string> => {
  const worker_id = newId()
  await aggregates.workers.handle(
    streamOf.worker(worker_id),
    { type: 'StartWorker', worker_id, node: 'host/1', now },
    { correlation_id: worker_id },
  )
  return worker_id
}
const recover = async (node: Node, dead: readonly string[]) => {
  await node.views.settled()
  const { runs, workers } = node.views
  // As read models on the network: what was ended is out of the list by the next page.
  const slow = <D extends Doc>(collection: Collection<D>): Collection<D> => ({
    ...collection,
    find: async (query) => {
      await node.views.settled()
      return collection.find(query)
    },
  })
  const views = { runs: slow(runs), workers: slow(workers) }
  for await (const { worker_id } of deadWorkers(views, (id) => dead.includes(id)))
    await loseWorker({ aggregates: node.aggregates, views }, { worker_id })
  await node.views.settled()
}
const statuses = async ({ views }: Node, runs: readonly { run_id: string }[]) => {
  const found = await views.runs.getMany(runs.map(({ run_id }) => run_id))
  return [...new Set([...found.values()].map(({ status, error }) => `${status} ${error?.code}`))]
}

const recovery = suite<{ node: Node }>('the end of a lost worker (I3)', { timeoutMs: 60_000 })
recovery.before.each(async (context) => {
  context.node = await openNode()
})
recovery.after.each(({ node }) => node.close())

recovery('ends every run of a lost worker, however many', async ({ node }) => {
  const [dead, alive] = [await startWorker(node), await startWorker(node)]
  const lost = await Promise.all(Array.from({ length: 350 }, () => startRun(node, dead)))
  const kept = await Promise.all([startRun(node, alive), startRun(node, alive)])
  await recover(node, [dead])
  assert.equal(await statuses(node, lost), ['failed worker_lost'])
  assert.equal(await statuses(node, kept), ['running undefined'])
  assert.is((await node.views.workers.get(dead))?.alive, false)
  assert.is((await node.views.workers.get(alive))?.alive, true)
})

recovery('ends the runs of every lost worker, however many', async ({ node }) => {
  const workers: string[] = []
  for (let i = 0; i < 130; i++) workers.push(await startWorker(node))
  const runs = await Promise.all(workers.map((worker_id) => startRun(node, worker_id)))
  await recover(node, workers)
  assert.equal(await statuses(node, runs), ['failed worker_lost'])
  assert.is(
    (await node.views.workers.find({ equal: { alive: true }, sort: 'order', limit: 1, offset: 0 })).total,
    0,
  )
})

recovery('starts each run again as its next attempt, in the same append', async ({ node }) => {
  const dead = await startWorker(node)
  const run = await startRun(node, dead)
  await recover(node, [dead])
  const stored = await Array.fromAsync(node.store.read(streamOf.stream(run.stream_id)))
  const asked = stored.at(-1)?.event as EventOf<'RunRequested'>
  assert.equal(
    [asked.type, asked.origin_run_id, asked.attempt, asked.lost],
    ['RunRequested', run.run_id, 2, 1],
  )
})

recovery('ends the runs of a worker that said it stopped', async ({ node }) => {
  const [stopped, alive] = [await startWorker(node), await startWorker(node)]
  const [left, kept] = [await startRun(node, stopped), await startRun(node, alive)]
  await node.aggregates.workers.handle(
    streamOf.worker(stopped),
    { type: 'StopWorker', worker_id: stopped, now },
    { correlation_id: stopped },
  )
  await recover(node, [])
  assert.equal(await statuses(node, [left]), ['failed worker_lost'])
  assert.equal(await statuses(node, [kept]), ['running undefined'])
})

recovery('ends the runs of workers that never registered', async ({ node }) => {
  const alive = await startWorker(node)
  const left = await Promise.all(Array.from({ length: 3 }, () => startRun(node, newId())))
  const kept = await startRun(node, alive)
  await recover(node, [])
  assert.equal(await statuses(node, left), ['failed worker_lost'])
  assert.equal(await statuses(node, [kept]), ['running undefined'])
})

recovery('of one run with a defect does not keep the others', async ({ node }) => {
  const dead = await startWorker(node)
  const runs = await Promise.all(Array.from({ length: 3 }, () => startRun(node, dead)))
  await node.views.settled()
  const [broken, ...others] = runs
  const handle = ((stream, ...rest) =>
    stream === streamOf.stream(broken?.stream_id ?? '')
      ? Promise.reject(new AppError('internal_server_error', 'a fact that cannot be processed'))
      : node.aggregates.streams.handle(stream, ...rest)) as typeof node.aggregates.streams.handle
  const streams = { handle } as Node['aggregates']['streams']
  const cut = { aggregates: { ...node.aggregates, streams }, views: node.views }
  await loseWorker(cut, { worker_id: dead }).then(
    () => assert.unreachable('expected the defect'),
    (error: Error) => assert.is(error.message, 'a fact that cannot be processed'),
  )
  await node.views.settled()
  assert.equal(await statuses(node, others), ['failed worker_lost'])
})

recovery('of one run whose stream does not answer does not keep the others', async ({ node }) => {
  const dead = await startWorker(node)
  const runs = await Promise.all(Array.from({ length: 4 }, () => startRun(node, dead)))
  await node.views.settled()
  const first = { equal: {}, sort: 'running_on', ...runsOn(dead), limit: 1, offset: 0 } as const
  const [silent] = (await node.views.runs.find(first)).items
  let asked = 0
  const handle = ((stream, ...rest) => {
    if (stream !== streamOf.stream(silent?.stream_id ?? ''))
      return node.aggregates.streams.handle(stream, ...rest)
    asked++
    return Promise.reject(new AppError('unavailable', 'the stream does not answer'))
  }) as typeof node.aggregates.streams.handle
  const streams = { handle } as Node['aggregates']['streams']
  const cut = { aggregates: { ...node.aggregates, streams }, views: node.views }
  await loseWorker(cut, { worker_id: dead }).then(
    () => assert.unreachable('expected the failure'),
    (error: Error) => assert.is(error.message, 'the stream does not answer'),
  )
  await node.views.settled()
  const others = runs.filter(({ run_id }) => run_id !== silent?.run_id)
  assert.equal([others.length, asked], [3, 1])
  assert.equal(await statuses(node, others), ['failed worker_lost'])
  await recover(node, []) // its runs are found again, although it was marked
  assert.equal(await statuses(node, runs), ['failed worker_lost'])
})

recovery('does not ask for every run while the event store is away', async ({ node }) => {
  const dead = await startWorker(node)
  await Promise.all(Array.from({ length: 10 }, () => startRun(node, dead)))
  await node.views.settled()
  let asked = 0
  const handle = (() => {
    asked++
    return Promise.reject(new AppError('unavailable', 'the store does not answer'))
  }) as typeof node.aggregates.streams.handle
  const streams = { handle } as Node['aggregates']['streams']
  const cut = { aggregates: { ...node.aggregates, streams }, views: node.views }
  await loseWorker(cut, { worker_id: dead }).then(
    () => assert.unreachable('expected the failure'),
    (error: Error) => assert.is(error.message, 'the store does not answer'),
  )
  assert.ok(asked < 5, `asked ${asked} times`)
})

recovery('twice is once', async ({ node }) => {
  const dead = await startWorker(node)
  const run = await startRun(node, dead)
  await recover(node, [dead])
  const before = await node.store.head()
  await recover(node, [dead])
  assert.is(await node.store.head(), before)
  assert.is((await node.typesIn(run.stream_id)).filter((type) => type === 'RunFailed').length, 1)
})

recovery('that was cut begins again', async ({ node }) => {
  const dead = await startWorker(node)
  const runs = await Promise.all(Array.from({ length: 5 }, () => startRun(node, dead)))
  await node.views.settled()
  let left = 2
  const handle = ((...args: Parameters<typeof node.aggregates.streams.handle>) => {
    if (left-- === 0) return Promise.reject(new AppError('unavailable', 'the process dies here'))
    return node.aggregates.streams.handle(...args)
  }) as typeof node.aggregates.streams.handle
  const streams = { handle } as Node['aggregates']['streams']
  const cut = { aggregates: { ...node.aggregates, streams }, views: node.views }
  await loseWorker(cut, { worker_id: dead }).then(
    () => assert.unreachable('expected it to be cut'),
    (error: Error) => assert.is(error.message, 'the process dies here'),
  )
  await node.views.settled()
  await recover(node, [dead])
  assert.equal(await statuses(node, runs), ['failed worker_lost'])
})

recovery(
  'marks the worker before its runs end, so one that continues meanwhile knows it',
  async ({ node }) => {
    const dead = await startWorker(node)
    await startRun(node, dead)
    await node.views.settled()
    const facts = async () =>
      (await Array.fromAsync(node.store.read(streamOf.worker(dead)))).map(({ event }) => event.type)
    const before: string[][] = []
    const handle = (async (...args: Parameters<typeof node.aggregates.streams.handle>) => {
      before.push(await facts())
      return node.aggregates.streams.handle(...args)
    }) as typeof node.aggregates.streams.handle
    const streams = { handle } as Node['aggregates']['streams']
    const watched = { aggregates: { ...node.aggregates, streams }, views: node.views }
    assert.equal(await loseWorker(watched, { worker_id: dead }), { isChanged: true, runs_lost: 1 })
    assert.equal(before, [['WorkerStarted', 'WorkerLost']])
  },
)
recovery.run()
