import * as assert from 'uvu/assert'
import { clock, isoOf } from '../../src/clock.ts'
import { streamOf } from '../../src/events/streams.ts'
import { Alarms } from '../../src/sagas/alarms.ts'
import { retryRuns, retryRunsCore } from '../../src/sagas/retryRuns.ts'
import { runSaga } from '../../src/sagas/runSaga.ts'
import { silent } from '../../src/logger.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { reacting } from './reacting.ts'
import { cause, failRun, now, type Node, openNode, startRun } from '../support/openNode.ts'

const begun = ['StreamCreated', 'EventPublished', 'EventHandled', 'RunStarted']
const DAY = 24 * 60 * 60 * 1000
const soon = { attempts: 3, delay: 20 }
/** Runs the saga and returns its alarms. */
const saga = ({
  store,
  aggregates,
  views,
  turns,
  signal,
}: Pick<Node, 'store' | 'aggregates' | 'views' | 'turns' | 'signal'>) => {
  const alarms = new Alarms()
  void runSaga(retryRuns({ store, aggregates, views, turns }), { logger: silent, clock, alarms }, signal)
  return alarms
}

const rule = suite('the rules of retries')
const waitingRun = { run_id: 'r', stream_id: 's', env_id: 'env' }
const due = { type: 'due', run: waitingRun } as const
const failedMs = Date.parse(now) - 5000
const waits = { type: 'waits', run: waitingRun, failed_at: isoOf(failedMs), retry_at: now } as const

rule('a failed run waits until its retry is due', () => {
  reacting(retryRunsCore)
    .given()
    .when(waits)
    .at(failedMs + 1000)
    .then({ do: 'setAlarm', key: 'r', at: Date.parse(now), input: due })
})
rule('a run whose failure has a time to come waits for its delay', () => {
  const at = failedMs - 400 * DAY
  reacting(retryRunsCore)
    .given()
    .when(waits)
    .at(at)
    .then({ do: 'setAlarm', key: 'r', at: at + 5000, input: due })
})
rule('a run that is due gets its retry', () => {
  reacting(retryRunsCore).given(waits).when(due).at(0).then({ do: 'carryOut', key: 'r', command: waitingRun })
})
rule('a retry that failed because of a defect is tried again', () => {
  const again = { do: 'setAlarm', key: 'r', at: 5000 + 60_000, input: due } as const
  reacting(retryRunsCore).given(waits, due).when({ type: 'failed', run: waitingRun }).at(5000).then(again)
})
rule('a run that was retried or cancelled waits no longer', () => {
  reacting(retryRunsCore)
    .given(waits)
    .when({ type: 'over', run_id: 'r' })
    .at(0)
    .then({ do: 'drop', key: 'r' })
})
rule('the retries of a deleted project end at once', () => {
  const project = { env_id: 'env', project_id: 'p', at: '1' }
  reacting(retryRunsCore)
    .given(waits)
    .when({ type: 'deleted', project })
    .at(0)
    .then({ do: 'carryOut', key: 'p', command: project })
})
rule.run()

const retry = suite<{ node: Node }>('a retry')
retry.before.each(async (context) => {
  context.node = await openNode()
})
retry.after.each(({ node }) => node.close())

retry('follows a failure when it is due', async ({ node }) => {
  const alarms = saga(node)
  const run = await startRun(node, 'w', soon)
  await failRun(node, run, 'w', clock.now())
  await until(async () => (await node.typesIn(run.stream_id)).length === 7)
  assert.equal(await node.typesIn(run.stream_id), [...begun, 'RunFailed', 'RunRetried', 'RunRequested'])
  await until(() => alarms.size === 0) // its failure may be read again after its retry
})

retry('follows a failure that a worker whose clock was ahead has stored', async ({ node }) => {
  const [known, stored] = [await startRun(node, 'w', soon), await startRun(node, 'w', soon)]
  await failRun(node, stored, 'w', clock.now() + 400 * DAY)
  const alarms = saga(node) // finds it in the read model
  await until(async () => (await node.typesIn(stored.stream_id)).includes('RunRequested'))
  await failRun(node, known, 'w', clock.now() + 400 * DAY)
  await until(async () => (await node.typesIn(known.stream_id)).includes('RunRequested'))
  await until(() => alarms.size === 0)
})

retry('does not start before it is due', async ({ node }) => {
  const alarms = saga(node)
  const [late, early] = [
    await startRun(node, 'w', { attempts: 1, delay: 3_600_000 }),
    await startRun(node, 'w', soon),
  ]
  await failRun(node, late, 'w', clock.now())
  await failRun(node, early, 'w', clock.now())
  await until(async () => (await node.typesIn(early.stream_id)).includes('RunRequested'))
  assert.equal(await node.typesIn(late.stream_id), [...begun, 'RunFailed'])
  await until(() => alarms.size === 1)
})

retry('does not start for a cancelled run', async ({ node }) => {
  const alarms = saga(node)
  const run = await startRun(node, 'w', { attempts: 1, delay: 3_600_000 })
  await failRun(node, run, 'w', clock.now())
  await until(() => alarms.size === 1)
  await node.aggregates.streams.handle(
    streamOf.stream(run.stream_id),
    { type: 'CancelRun', run_id: run.run_id, now },
    cause,
  )
  await until(() => alarms.size === 0)
})

retry('ends at the deletion of its project, and says so', async ({ node }) => {
  const alarms = saga(node)
  const { projects } = node.aggregates
  const [project_id, run] = ['project', await startRun(node, 'w', { attempts: 1, delay: 3_600_000 })]
  const project = streamOf.project(project_id)
  await projects.handle(project, { type: 'CreateProject', project_id, name: 'shop' }, cause)
  await failRun(node, run, 'w', clock.now())
  await until(() => alarms.size === 1)
  await projects.handle(project, { type: 'DeleteProject', project_id }, cause)
  await until(async () => (await node.typesIn(run.stream_id)).length === 6)
  await until(() => alarms.size === 0)
  await node.views.settled('runs')
  const doc = await node.views.runs.get(run.run_id)
  assert.equal([doc?.status, doc?.retry_at, doc?.retried_by], ['failed', null, null])
  assert.equal(doc?.error, {
    code: 'function_not_found',
    message: 'The project shop was deleted, so the run is not retried',
    cause: { message: 'broke', code: 'user_error' },
  })
})

retry('of another project stays when a project is deleted', async ({ node }) => {
  const alarms = saga(node)
  const { projects } = node.aggregates
  const run = await startRun(node, 'w', { attempts: 1, delay: 3_600_000 })
  await failRun(node, run, 'w', clock.now())
  await until(() => alarms.size === 1)
  const [project_id, marker] = ['another', await startRun(node, 'w', soon)]
  const project = streamOf.project(project_id)
  await projects.handle(project, { type: 'CreateProject', project_id, name: 'other' }, cause)
  await projects.handle(project, { type: 'DeleteProject', project_id }, cause)
  await failRun(node, marker, 'w', clock.now()) // the saga reads this after the deletion
  await until(async () => (await node.typesIn(marker.stream_id)).includes('RunRequested'))
  assert.is((await node.typesIn(run.stream_id)).at(-1), 'RunFailed')
  assert.is(alarms.size, 1)
})

retry('starts once, although many nodes wait for it', async ({ node }) => {
  const all = Array.from({ length: 4 }, () => saga(node))
  const waiting = () => all.reduce((sum, { size }) => sum + size, 0)
  const runs = await Promise.all(Array.from({ length: 20 }, () => startRun(node, 'w', soon)))
  await Promise.all(runs.map((run) => failRun(node, run, 'w', clock.now())))
  for (const { stream_id } of runs)
    await until(async () => (await node.typesIn(stream_id)).includes('RunRequested'))
  await until(() => waiting() === 0)
  for (const { stream_id } of runs)
    assert.equal((await node.typesIn(stream_id)).slice(5), ['RunRetried', 'RunRequested'])
})

retry('starts after the restart when it was due while the service was down', async ({ node }) => {
  const runs = await Promise.all(Array.from({ length: 250 }, () => startRun(node, 'w', soon)))
  await Promise.all(runs.map((run) => failRun(node, run, 'w', clock.now())))
  await node.close()
  const again = await openNode(node.dir)
  await again.views.settled()
  // As a read model on the network: others get their turn during a query.
  const slow = {
    ...again.views.runs,
    find: async (query: Parameters<typeof again.views.runs.find>[0]) => {
      await until(() => again.views.settled().then(() => true))
      return again.views.runs.find(query)
    },
  }
  saga({ ...again, views: { ...again.views, runs: slow } })
  for (const { stream_id } of runs)
    await until(async () => (await again.typesIn(stream_id)).includes('RunRequested'))
  await again.close()
})
retry('starts although the read model of the runs is behind the log', async ({ node }) => {
  await startRun(node, 'w')
  const reached = await node.views.completeTo('runs', node.signal)
  const behind = { ...node.views, completeTo: () => Promise.resolve(reached) }
  const run = await startRun(node, 'w', soon)
  await failRun(node, run, 'w', clock.now())
  const empty = { ...behind.runs, find: () => Promise.resolve({ items: [], total: 0 }) } // as it was at `reached`
  saga({ ...node, views: { ...behind, runs: empty } })
  await until(async () => (await node.typesIn(run.stream_id)).includes('RunRequested'))
})
retry.run()
