import * as assert from 'uvu/assert'
import { AppError } from '../../src/errors.ts'
import { streamOf } from '../../src/events/streams.ts'
import { clock } from '../../src/clock.ts'
import { cause, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wantedCall } from './openWorker.ts'

/** A worker whose runtime cannot fetch the build until `back` is called. */
const openAway = async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const { worker, held, runtime } = openWorker(node)
  const { invoke } = runtime
  const seen = { refused: 0, isAway: true, error: new AppError('unavailable', 'The blobs do not answer') }
  runtime.invoke = (invocation) => {
    if (!seen.isAway) return invoke(invocation)
    seen.refused++
    return Promise.reject(seen.error)
  }
  const run = wantedCall(build)
  await worker.start()
  await worker.take(run)
  await until(() => seen.refused > 1)
  return { node, worker, held, seen, plan: run.plan }
}

const outage = suite('a run whose build or input cannot be fetched')

outage('waits, and uses no attempt', async () => {
  const { node, worker, held, seen, plan } = await openAway()
  assert.is((await node.typesIn(plan.stream_id)).at(-1), 'RunStarted')
  seen.isAway = false
  await until(() => held.length === 1)
  held[0]?.({ status: 'succeeded', result: 1 })
  await until(async () => (await node.typesIn(plan.stream_id)).at(-1) === 'RunSucceeded')
  await worker.stop()
  await node.close()
})

outage('is returned when its worker stops', async () => {
  const { node, worker, plan } = await openAway()
  await worker.stop()
  assert.is((await node.typesIn(plan.stream_id)).at(-1), 'RunRequested')
  await node.close()
})

outage('can be cancelled meanwhile', async () => {
  const { node, worker, seen, plan } = await openAway()
  await node.aggregates.streams.handle(
    streamOf.stream(plan.stream_id),
    { type: 'CancelRun', run_id: plan.run_id, now: clock.iso() },
    cause,
  )
  await worker.stop()
  const { refused } = seen
  assert.is((await node.typesIn(plan.stream_id)).at(-1), 'RunCancelled')
  seen.isAway = false
  assert.is(seen.refused, refused)
  await node.close()
})

outage('fails when its build no longer exists', async () => {
  const { node, worker, seen, plan } = await openAway()
  seen.error = new AppError('not_found', 'Build b no longer exists')
  await until(async () => (await node.typesIn(plan.stream_id)).at(-1) === 'RunFailed')
  await worker.stop()
  await node.close()
})

outage.run()
