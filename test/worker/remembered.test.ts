import * as assert from 'uvu/assert'
import type { Recorded } from '../../src/events/event.ts'
import { streamOf } from '../../src/events/streams.ts'
import type { WantedRun } from '../../src/ports/claimer.ts'
import { cause, type Node, now, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { deployBuild, openWorker, wantedCall } from './openWorker.ts'

/** More than the worker remembers of the runs that have ended. */
const MANY = 33_000

/** The request of a run, as the log has it. */
const requestOf = ({ plan, input }: WantedRun): Recorded => ({
  id: plan.run_id,
  event: { type: 'RunRequested', ...plan, input },
  metadata: cause,
  stream: streamOf.stream(plan.stream_id),
  revision: 1,
  cursor: '1',
  at: now,
})

const remembering = suite('a run in progress', { timeoutMs: 60_000 })

remembering('is not executed again, however many others came since (W1)', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const handle = (() =>
    Promise.resolve({
      events: [],
      ids: [],
      firstRevision: 0,
      cursor: null,
    })) as Node['aggregates']['streams']['handle']
  const streams = { handle } as Node['aggregates']['streams']
  const { worker, runtime, invocations } = openWorker(
    { ...node, aggregates: { ...node.aggregates, streams } },
    { maxConcurrentRuns: 2 * MANY },
  )
  const execute = (run: WantedRun) => worker.execute([run.plan], requestOf(run), worker.worker_id)
  const long = wantedCall(build)
  const { invoke } = runtime
  runtime.invoke = (invocation) =>
    invocation.run.run_id === long.plan.run_id
      ? invoke(invocation)
      : Promise.resolve({ status: 'succeeded', result: null })
  execute(long)
  for (let n = 0; n < MANY; n++) execute(wantedCall(build))
  execute(long)
  await new Promise(setImmediate)
  assert.is(invocations.length, 1)
  await worker.stop({ drainMs: 10 })
  await node.close()
})

remembering.run()
