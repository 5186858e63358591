import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import type { EventOf } from '../../src/events/index.ts'
import { streamOf } from '../../src/events/streams.ts'
import { openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wanted } from './openWorker.ts'

const lost = suite('a worker that was given up though it lives')

lost('ends its remaining runs as lost, and continues under a new id (W5)', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const ids: string[] = []
  const { worker, held } = openWorker(node, { onIdentity: (worker_id) => ids.push(worker_id) })
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

lost.run()
