import * as assert from 'uvu/assert'
import { isOf } from '../../src/events/event.ts'
import { streamOf } from '../../src/events/streams.ts'
import { cause, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wantedCall } from './openWorker.ts'

const runs = suite('a run of a deleted project')

runs('fails for good, because no later attempt could begin', async () => {
  const node = await openNode()
  const { worker } = openWorker(node)
  await worker.start()
  const build = await deployBuild(node)
  const { project_id } = build
  await node.aggregates.projects.handle(
    streamOf.project(project_id),
    { type: 'DeleteProject', project_id },
    cause,
  )
  await node.views.settled()
  const run = wantedCall(build)
  await worker.take({ ...run, plan: { ...run.plan, retry: { attempts: 3, delay: 3_600_000 } } })
  const facts = () => Array.fromAsync(node.store.read(streamOf.stream(run.plan.stream_id)))
  await until(async () => (await facts()).some((fact) => isOf(fact, 'RunFailed')))
  const failed = (await facts()).find((fact) => isOf(fact, 'RunFailed'))
  assert.ok(failed)
  assert.equal(
    [failed.event.error, failed.event.retry_at],
    [{ code: 'function_not_found', message: 'Project shop no longer exists' }, undefined],
  )
  await worker.stop()
  await node.close()
})

runs.run()
