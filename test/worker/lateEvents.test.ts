import * as assert from 'uvu/assert'
import { WaitingCalls } from '../../src/loops/waitingCalls.ts'
import { requestRun } from '../../src/commands/runs/requestRun.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import type { Delivery } from '../../src/ports/eventStore.ts'
import { UntakenEvents } from '../../src/worker/untakenEvents.ts'
import { cause, type Node, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wanted } from './openWorker.ts'

interface Context {
  node: Node
  /** The deliveries of a worker that is paused: it acknowledges none. */
  unheard: Delivery[]
  untaken: UntakenEvents
  /** Requests a run, which the paused worker receives. Resolves with its stream. */
  request(): Promise<string>
}

const late = suite<Context>('an event that was delivered to a paused worker')

late.before.each(async (context) => {
  const node = await openNode()
  const { store, views, aggregates, signal } = node
  const build = await deployBuild(node)
  const unheard: Delivery[] = []
  const pausedWorker = async () => {
    const types = ['EventPublished', 'RunRequested'] as const
    for await (const delivery of store.consume('workers', { types, inFlight: 100, signal }))
      unheard.push(delivery)
  }
  void pausedWorker()
  const untaken = new UntakenEvents({ store, views, logger: silent })
  void untaken.follow(signal)
  const request = async () => {
    const { plan, input } = wanted(build)
    const ids = { stream: newId(), run: newId() }
    const deps = {
      store,
      aggregates,
      claimer: null,
      offers: { make: () => false },
      calls: new WaitingCalls(),
    }
    const before = unheard.length
    requestRun(
      deps,
      { run: { ...plan, timeout: 60_000 }, input },
      { cause: { ...cause, correlation_id: newId() }, newId: (kind) => ids[kind as keyof typeof ids] },
    ).catch(() => {})
    await until(() => unheard.length > before && untaken.waiting > before)
    return ids.stream
  }
  Object.assign(context, { node, unheard, untaken, request })
})
late.after.each(({ node }) => node.close())

late('is taken by another worker', async ({ node, untaken, request }) => {
  const stream_id = await request()
  const { worker, held } = openWorker(node, { untaken, lateMs: 1 })
  await worker.start()
  await until(() => held.length === 1)
  assert.equal(await node.typesIn(stream_id), ['StreamCreated', 'RunRequested', 'RunStarted'])
  await worker.stop({ drainMs: 10 })
})

late('starts its run once, although two workers take it', async ({ node, untaken, request }) => {
  const stream_id = await request()
  const workers = [openWorker(node, { untaken, lateMs: 1 }), openWorker(node, { untaken, lateMs: 1 })]
  for (const { worker } of workers) await worker.start()
  await until(() => untaken.waiting === 0)
  assert.is((await node.typesIn(stream_id)).filter((type) => type === 'RunStarted').length, 1)
  assert.is(workers.flatMap(({ held }) => held).length, 1)
  for (const { worker } of workers) await worker.stop({ drainMs: 10 })
})

late.run()
