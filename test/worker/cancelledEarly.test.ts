import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { storeRequest } from '../../src/commands/runs/requestRun.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { streamOf } from '../../src/events/streams.ts'
import { forwarding } from '../support/forwarding.ts'
import { cause, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wanted } from './openWorker.ts'

const early = suite('a run that is cancelled before the reply to its claim arrives')

early('does not begin', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const run = wanted(build)
  const { run_id, stream_id } = run.plan
  const replied = Promise.withResolvers<void>()
  const seen = Promise.withResolvers<void>()
  const slow = forwarding(node.store, {
    async append(stream, events, expected) {
      const appended = await node.store.append(stream, events, expected)
      if (events.some(({ event }) => event.type === 'RunStarted' && event.run_id === run_id))
        await replied.promise
      return appended
    },
    async *subscribe(options) {
      for await (const batch of node.store.subscribe(options)) {
        yield batch
        if (batch.events.some(({ event }) => event.type === 'RunCancelled')) seen.resolve()
      }
    },
  })
  const { worker, invocations } = openWorker({ ...node, aggregates: openAggregates(slow) }, {}, slow)
  await worker.start()
  await storeRequest(node, run)
  await until(async () => (await node.typesIn(stream_id)).includes('RunStarted'))
  const command = { type: 'CancelRun', run_id, now: clock.iso() } as const
  await node.aggregates.streams.handle(streamOf.stream(stream_id), command, cause)
  await seen.promise
  replied.resolve()
  const later = wanted(build)
  await worker.take(later)
  await until(() => invocations.length > 0)
  assert.equal(
    invocations.map((invocation) => invocation.run.run_id),
    [later.plan.run_id],
  )
  assert.is((await node.typesIn(stream_id)).at(-1), 'RunCancelled')
  await worker.stop({ drainMs: 10 })
  await node.close()
})

early.run()
