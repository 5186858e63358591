import * as assert from 'uvu/assert'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { storeRequest } from '../../src/commands/runs/requestRun.ts'
import { openNode } from '../support/openNode.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wanted } from './openWorker.ts'

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

stopping.run()
