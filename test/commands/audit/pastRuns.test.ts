import * as assert from 'uvu/assert'
import { type Past, pastOf } from '../../../src/commands/audit/past.ts'
import { orderBeyond, runsThen } from '../../../src/commands/audit/pastRuns.ts'
import { searchRuns } from '../../../src/commands/runs/searchRuns.ts'
import { clock } from '../../../src/clock.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { exampleOf } from '../../events/examples.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { openCommands } from '../openCommands.ts'
import { plantEnv } from '../plantEnv.ts'
import { entriesOf, fill, importInto } from '../transfer/importHarness.ts'

const [node, elsewhere] = await Promise.all([openCommands(), openCommands()])
const { deps, views, store } = node
const { env_id } = await plantEnv(node, 'acme')

/** Starts a run and resolves with it and its place in the log. */
const startRun = async () => {
  const [stream_id, run_id] = [newId(), newId()]
  const build = { project_id: 'p', project_name: 'shop', build_id: 'b', target: { ns: 'a', var: 'b' } }
  const plan = { run_id, stream_id, run_type: 'call', attempt: 1, ...build } as const
  const claim = { worker_id: 'w', now: clock.iso() }
  await deps.aggregates.streams.handle(
    streamOf.stream(stream_id),
    { type: 'RequestRun', env_id, plan, create: true, claim },
    { env_id, correlation_id: 'c' },
  )
  return { run_id, start_time: claim.now, position: await store.head() }
}

/** What a list of runs finds. */
const runsOf = async (past: Past) => {
  await views.settled()
  const before = await orderBeyond(past)
  const range = { limit: 100, offset: 0, ...(before !== undefined && { before }) }
  const asTheyWere = runsThen.bind(undefined, past)
  const { items, total } = await searchRuns(views, { env_id }, range, { most: 100, asTheyWere })
  return { ids: items.map((run) => run.run_id), total }
}

const past = suite('a past state by a position')

past('before imported facts, which are older, has the runs that had started', async () => {
  const tenant = await plantEnv(elsewhere, 'moved')
  await fill(elsewhere, tenant)
  const entries = await entriesOf(elsewhere, tenant)
  const first = await startRun()
  const second = await startRun()
  await importInto(node, entries)
  const then = await pastOf(deps, second.position)
  const next = await then.next()
  assert.ok(next && next.at < first.start_time, 'the next fact was imported')
  assert.equal(await runsOf(then), { ids: [second.run_id, first.run_id], total: 2 })
  assert.ok((await then.time()) >= second.start_time)
})

past('before the installation, which a restore stores last, has the runs that had started', async () => {
  const run = await startRun()
  const founded = { id: newId(), event: exampleOf.InstallationFounded }
  const metadata = { correlation_id: 'c', first_at: '2026-01-01T00:00:00.000Z' }
  await store.append(streamOf.installation, [{ ...founded, metadata }], 'none')
  const then = await pastOf(deps, run.position)
  assert.is((await runsOf(then)).ids[0], run.run_id)
  assert.ok((await then.time()) >= run.start_time)
  const { run_id } = await startRun()
  assert.not.ok((await runsOf(then)).ids.includes(run_id))
})

const byTime = suite('a past state by a time')

byTime('has the projects that a later import continued', async () => {
  const tenant = await plantEnv(elsewhere, 'continued')
  const project = async (on: typeof node, name: string, { caller }: Pick<typeof tenant, 'caller'>) => {
    await createProject(on.deps, { name }, caller)
    await on.views.settled()
  }
  await project(elsewhere, 'first', tenant)
  await importInto(node, await entriesOf(elsewhere, tenant))
  await project(elsewhere, 'second', tenant)
  const time = clock.iso()
  await until(() => Promise.resolve(clock.iso() > time))
  await project(node, 'local', tenant)
  await importInto(node, await entriesOf(elsewhere, tenant))
  const found = await (await pastOf(deps, time)).projectPage(tenant.env_id, { limit: 10, offset: 0 })
  assert.equal(
    found.docs.map(({ name }) => name),
    ['second', 'first'],
  )
})

byTime.after(() => Promise.all([node.close(), elsewhere.close()]))
past.run()
byTime.run()
