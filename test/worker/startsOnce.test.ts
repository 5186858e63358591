import * as assert from 'uvu/assert'
import { loseWorker } from '../../src/commands/runs/loseWorker.ts'
import { isAppError } from '../../src/errors.ts'
import type { EventOf } from '../../src/events/index.ts'
import { streamOf } from '../../src/events/streams.ts'
import { openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wantedCall } from './openWorker.ts'

/** A run that a worker has claimed. The worker watches nothing, so it can be lost as if it had died. */
const claimed = async ({ once }: { once: boolean }) => {
  const node = await openNode()
  const call = wantedCall(await deployBuild(node))
  const run = once ? { ...call, plan: { ...call.plan, once, marks_begin: true } } : call
  const { worker, invocations } = openWorker(node, { begins: false, alone: true })
  await worker.take(run)
  await until(() => invocations.length === 1)
  await node.views.settled()
  const factsOf = async () =>
    (await Array.fromAsync(node.store.read(streamOf.stream(run.plan.stream_id)))).map(({ event }) => event)
  const typesOf = async () => (await factsOf()).map(({ type }) => type)
  return {
    node,
    run,
    factsOf,
    typesOf,
    loadInput: async () => invocations[0]?.loadInput(),
    lose: () => loseWorker(node, { worker_id: worker.worker_id }),
    async close() {
      await worker.stop({ drainMs: 10 })
      await node.close()
    },
  }
}

const single = suite('a run that may start only once, and whose worker died')

single('is executed by another worker if its code had not begun', async () => {
  const { node, run, typesOf, factsOf, lose, loadInput, close } = await claimed({ once: true })
  await lose()
  assert.equal(await typesOf(), ['StreamCreated', 'RunRequested', 'RunStarted', 'RunRequested'])
  const error: unknown = await loadInput().catch((thrown: unknown) => thrown)
  assert.ok(isAppError(error, 'not_found'), 'the code must not begin on a worker that was lost')
  const next = openWorker(node)
  await next.worker.start()
  await until(() => next.held.length === 1)
  const starts = (await factsOf()).filter((fact): fact is EventOf<'RunStarted'> => fact.type === 'RunStarted')
  assert.equal(starts.map(({ run_id, worker_id, reclaimed }) => [run_id, worker_id, reclaimed]).at(-1), [
    run.plan.run_id,
    next.worker.worker_id,
    true,
  ])
  await next.worker.stop({ drainMs: 10 })
  await close()
})

single('ends as worker_lost once its code may have begun', async () => {
  const { typesOf, factsOf, lose, loadInput, close } = await claimed({ once: true })
  await loadInput()
  await loadInput() // after an outage, it is loaded again
  assert.equal(await typesOf(), ['StreamCreated', 'RunRequested', 'RunStarted', 'RunBegun'])
  await lose()
  const end = (await factsOf()).at(-1)
  assert.is(end?.type === 'RunFailed' ? end.error.code : end?.type, 'worker_lost')
  await close()
})

single('costs other runs no fact', async () => {
  const { typesOf, loadInput, close } = await claimed({ once: false })
  await loadInput()
  assert.equal(await typesOf(), ['StreamCreated', 'RunRequested', 'RunStarted'])
  await close()
})

single.run()
