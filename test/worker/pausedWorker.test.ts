import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { AppError } from '../../src/errors.ts'
import { storeRequest } from '../../src/commands/runs/requestRun.ts'
import type { FunctionSpec } from '../../src/events/project.ts'
import { isOf } from '../../src/events/event.ts'
import { streamOf } from '../../src/events/streams.ts'
import { forwarding } from '../support/forwarding.ts'
import { openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wanted, wantedCall } from './openWorker.ts'
import { withLateLoss } from './withLateLoss.ts'

const paused = suite('a worker that was paused')

/**
 * A worker whose process does nothing for a minute. Meanwhile it is declared lost. It reads that in the log only after `hear`
 * was called.
 */
const openPaused = async (begins: boolean, functions: FunctionSpec[] = []) => {
  const node = await openNode()
  const build = await deployBuild(node, undefined, functions)
  const ids: string[] = []
  const heard = Promise.withResolvers<void>()
  let isPaused = false
  const store = forwarding(
    node.store,
    withLateLoss(node.store, heard.promise, () => isPaused),
  )
  const options = { begins, onIdentity: (worker_id: string) => void ids.push(worker_id) }
  const { worker, held, invocations } = openWorker(node, options, store)
  await worker.start()
  const { monotonic } = clock
  return {
    node,
    build,
    worker,
    held,
    invocations,
    ids,
    hear: heard.resolve,
    /** The minute passes. The worker looks at the clock by itself, so it was declared lost before it can notice the pause. */
    pause: async () => {
      isPaused = true
      const [worker_id = ''] = ids
      await node.aggregates.workers.handle(
        streamOf.worker(worker_id),
        { type: 'LoseWorker', worker_id, now: clock.iso() },
        { correlation_id: worker_id },
      )
      clock.monotonic = () => monotonic() + 60_000
    },
    close: async () => {
      clock.monotonic = monotonic
      heard.resolve()
      await worker.stop({ drainMs: 10 })
      await node.close()
    },
  }
}

paused('claims nothing until it knows whether it was declared lost (W5)', async () => {
  const { node, build, worker, held, ids, hear, pause, close } = await openPaused(true)
  await pause()
  assert.equal([worker.isOpen, worker.hasRoom('env')], [false, false])
  const run = wanted(build)
  await storeRequest(node, run)
  hear()
  await until(() => held.length === 1)
  const facts = await Array.fromAsync(node.store.read(streamOf.stream(run.plan.stream_id)))
  assert.equal(
    facts.filter((fact) => isOf(fact, 'RunStarted')).map(({ event }) => event.worker_id),
    [ids[1]],
  )
  await close()
})

paused('continues under its id if it was not declared lost', async () => {
  const { node, build, worker, held, ids, close } = await openPaused(true)
  const { monotonic } = clock
  clock.monotonic = () => monotonic() + 60_000
  await until(() => worker.isOpen)
  await storeRequest(node, wanted(build))
  await until(() => held.length === 1)
  assert.is(ids.length, 1)
  clock.monotonic = monotonic
  await close()
})

paused('claims nothing while it is cut off from the event store', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  let [isCutOff, heads] = [false, 0]
  const away = new AppError('unavailable', 'The event store does not answer')
  const store = forwarding(node.store, {
    head: () => (heads++, isCutOff ? Promise.reject(away) : node.store.head()),
  })
  const { worker, held } = openWorker(node, { isCutOff: () => isCutOff }, store)
  await worker.start()
  isCutOff = true
  const asked = heads
  await until(() => heads > asked + 1)
  assert.equal([worker.isOpen, worker.hasRoom('env')], [false, false])
  isCutOff = false
  await until(() => worker.isOpen)
  await storeRequest(node, wanted(build))
  await until(() => held.length === 1)
  await worker.stop({ drainMs: 10 })
  await node.close()
})

paused('does not begin the code of a function that starts only once, and returns its run', async () => {
  const { node, build, worker, invocations, hear, pause, close } = await openPaused(false)
  const call = wantedCall(build)
  const run = { ...call, plan: { ...call.plan, once: true, marks_begin: true } }
  await worker.take(run)
  await until(() => invocations.length === 1)
  await pause()
  const loaded = Promise.resolve(invocations[0]?.loadInput()).catch(() => 'refused')
  hear()
  assert.is(await loaded, 'refused')
  await until(() => invocations.length === 2)
  const types = await node.typesIn(run.plan.stream_id)
  assert.equal(types.slice(2), ['RunStarted', 'RunRequested', 'RunStarted'])
  await close()
})

paused('does not begin such code for a run in progress while it stops either', async () => {
  const { node, build, worker, invocations, hear, pause, close } = await openPaused(false, [
    { ns: 'a', var: 'b', once: true },
  ])
  await worker.take(wantedCall(build))
  await until(() => invocations.length === 1)
  invocations[0]?.onStart?.()
  const result = invocations[0]?.onHostCall({ op: 'run', fn: 'a/b', args: [] }, () => {})
  void Promise.resolve(result).catch(() => {}) // the worker is lost before the run ends
  await until(() => invocations.length === 2)
  await pause()
  const stopped = worker.stop({ drainMs: 600_000 })
  const loaded = Promise.resolve(invocations[1]?.loadInput()).catch(() => 'refused')
  await node.views.settled() // it could begin meanwhile
  hear()
  assert.is(await loaded, 'refused')
  await stopped
  await close()
})

paused.run()
