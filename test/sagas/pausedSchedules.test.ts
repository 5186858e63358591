import * as assert from 'uvu/assert'
import { clock, isoOf } from '../../src/clock.ts'
import { ticksOf } from '../../src/domain/cron.ts'
import type { FunctionSpec } from '../../src/events/project.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import type { DirectoryProject } from '../../src/projections/directoryProject.ts'
import type { Pause } from '../../src/projections/pauses.ts'
import { Alarms } from '../../src/sagas/alarms.ts'
import { fireSchedules, type Schedule } from '../../src/sagas/fireSchedules.ts'
import { runSaga } from '../../src/sagas/runSaga.ts'
import { type Node, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { running } from './running.ts'

const MINUTE = 60_000
const minutely: FunctionSpec = {
  ns: 'jobs',
  var: 'minutely',
  schedule: { cron: '* * * * *', timezone: 'UTC' },
}
const now = clock.now()
const deployedAt = isoOf(now - 60 * MINUTE)
const resumed_at = isoOf(now)
const paused = { ns: 'jobs', var: 'minutely', paused_at: isoOf(now - 5 * MINUTE), resumed_at: null }

const projectWith = (pauses: DirectoryProject['pauses']): DirectoryProject => ({
  project_id: 'p',
  env_id: 'env',
  name: 'shop',
  network: null,
  pauses,
  deployed: { build_id: 'b', hash: 'h', functions: [minutely], since: deployedAt },
  live: null,
})

/** A directory with one project, which `change` replaces. `late`: the project after this node has read the whole log. */
const directoryOf = (first: DirectoryProject, late?: DirectoryProject | null) => {
  let project: DirectoryProject | null = first
  let changed = (_: string): void => {}
  return {
    change(next: DirectoryProject) {
      project = next
      changed('p')
    },
    env: (env_id: string) => ({ env_id, name: 'dev', org_id: 'o', org_slug: 'local', plan: 'pro' }) as const,
    usedSince: () => 0,
    orgIdOf: () => 'o',
    projects: () => [first].values(),
    projectById: () => project ?? undefined,
    reach: async () => {
      if (late !== undefined) project = late
    },
    onChange(listener: (id: string) => void) {
      changed = listener
      return () => {}
    },
  }
}

const schedule = suite<{ node: Node }>('a paused schedule')
schedule.before.each(async (context) => {
  context.node = await openNode()
})
schedule.after.each(({ node }) => node.close())

/** The schedules that the saga knows after each change. */
const known = async (
  { signal, ...node }: Node,
  directory: ReturnType<typeof directoryOf>,
  ...changes: readonly DirectoryProject[]
): Promise<readonly Schedule[]> => {
  const inputs = fireSchedules({ ...node, signal, directory, logger: silent }).inputs(signal)
  const left = [...changes]
  for await (const input of inputs) {
    if (input.type !== 'deployed') continue
    const next = left.shift()
    if (!next) return input.schedules
    directory.change(next)
  }
  throw new Error('Expected the saga to report the last change')
}

schedule('has no tick, and is like a new one when it is resumed', async ({ node }) => {
  assert.equal(await known(node, directoryOf(projectWith([paused]))), [])
  const [resumed] = await known(
    node,
    directoryOf(projectWith([paused])),
    projectWith([{ ...paused, resumed_at }]),
  )
  assert.is(resumed?.since, now)
})

schedule('catches up no tick of its pause after a restart', async ({ node }) => {
  const [resumed] = await known(node, directoryOf(projectWith([{ ...paused, resumed_at }])))
  assert.is(resumed?.since, now)
})

schedule('catches up no tick of a pause that was shorter than a look at the projects', async ({ node }) => {
  const [resumed] = await known(node, directoryOf(projectWith([])), projectWith([{ ...paused, resumed_at }]))
  assert.is(resumed?.since, now)
})

schedule('does not change the other schedules of its project', async ({ node }) => {
  const [other] = await known(node, directoryOf(projectWith([{ ...paused, var: 'other' }])))
  assert.is(other?.since, Date.parse(deployedAt))
})

schedule('is found without a search through the pauses of a build with many', async ({ node }) => {
  const functions = Array.from({ length: 500 }, (_, n) => ({ ...minutely, var: `fn${n}` }))
  let reads = 0
  const counted = (name: string): Pause => ({
    ...paused,
    resumed_at,
    get var() {
      reads++
      return name
    },
  })
  const { deployed } = projectWith([])
  const project: DirectoryProject = {
    ...projectWith(functions.map((fn) => counted(fn.var))),
    deployed: deployed && { ...deployed, functions },
  }
  assert.is((await known(node, directoryOf(project))).length, 16, 'the first of many')
  assert.ok(reads < 10 * functions.length, `got ${reads} reads`)
})

schedule('leaves the alarms of the other functions of its build', async ({ node }) => {
  const third = { ...minutely, var: 'third' }
  const { deployed } = projectWith([])
  const build = deployed && { ...deployed, functions: [minutely, third] }
  const before = { ...projectWith([paused]), deployed: build }
  const after = { ...projectWith([{ ...paused, resumed_at }]), deployed: build }
  const armed = (await known(node, directoryOf(before), after)).map(({ scheduled }) => scheduled.fn.var)
  assert.equal(armed, ['minutely'])
})

/** The builds of the runs that a tick requests on a node that read the log until `late` only after the tick was due. */
const buildsOf = async (
  node: Node,
  late: DirectoryProject | null,
  at: number,
  usedSince = 0,
): Promise<readonly string[]> => {
  const directory = { ...directoryOf(projectWith([]), late), usedSince: () => usedSince }
  const { carryOut } = fireSchedules({ ...node, directory, logger: silent })
  const ticks = ticksOf('* * * * *', 'UTC')
  const project = projectWith([])
  const scheduled = { project, build: project.deployed, fn: minutely } as Schedule['scheduled']
  const one: Schedule = { schedule_id: newId(), ticks, since: now, scheduled }
  const done = await carryOut({ schedule: one, at }, running)
  assert.is(done?.type, 'fired')
  const builds: string[] = []
  for await (const { events, caughtUp } of node.store.subscribe({ signal: node.signal })) {
    for (const { event } of events) if (event.type === 'RunRequested') builds.push(event.build_id)
    if (caughtUp) break
  }
  return builds
}

const runsOf = async (...given: Parameters<typeof buildsOf>): Promise<number> =>
  (await buildsOf(...given)).length

schedule('starts nothing on a node that has not read of the pause yet', async ({ node }) => {
  assert.is(await runsOf(node, projectWith([paused]), clock.now()), 0)
})

schedule(
  'starts nothing of its pause on a node that reads of pause and resumption together',
  async ({ node }) => {
    const resumed = projectWith([{ ...paused, resumed_at }])
    assert.is(await runsOf(node, resumed, now - 1), 0)
    assert.is(await runsOf(node, resumed, now), 0)
    assert.is(await runsOf(node, resumed, now + 1), 1)
  },
)

schedule('has ticks again after a resumption that a clock which was ahead has recorded', async ({ node }) => {
  const at = clock.now()
  const resumedIn = (ms: number) => projectWith([{ ...paused, resumed_at: isoOf(at + ms) }])
  assert.is(await runsOf(node, resumedIn(MINUTE), at), 0, 'the usual difference of clocks')
  assert.is(await runsOf(node, resumedIn(120 * MINUTE), at), 1)
})

schedule('has ticks after an import that a clock which was ahead has recorded', async ({ node }) => {
  const at = clock.now()
  assert.is(await runsOf(node, projectWith([]), at, at + 1), 0, 'a tick of the source')
  assert.is(await runsOf(node, projectWith([]), at, at + MINUTE), 0, 'the usual difference of clocks')
  assert.is(await runsOf(node, projectWith([]), at, at + 120 * MINUTE), 1)
})

schedule('starts nothing on a node that has not read that it was removed', async ({ node }) => {
  const { deployed, ...project } = projectWith([])
  const removed = deployed && { ...deployed, build_id: 'c', functions: [{ ...minutely, var: 'other' }] }
  const hourly = { ...minutely, schedule: { cron: '0 * * * *', timezone: 'UTC' } }
  const changed = deployed && { ...deployed, build_id: 'c', functions: [hourly] }
  for (const build of [removed, changed, null])
    assert.is(await runsOf(node, { ...project, deployed: build ?? null }, clock.now()), 0)
  assert.is(await runsOf(node, null, clock.now()), 0)
})

schedule('runs the build that was deployed while its tick waited', async ({ node }) => {
  const { deployed, ...project } = projectWith([])
  const next = deployed && { ...deployed, build_id: 'c' }
  assert.equal(await buildsOf(node, { ...project, deployed: next ?? null }, clock.now()), ['c'])
})

schedule('keeps its pause over a deployment, and over one without the function', async ({ node }) => {
  const signed = { correlation_id: 'test', env_id: 'env' }
  const project_id = newId()
  const { projects } = node.aggregates
  const at = streamOf.project(project_id)
  const name = { project_id, ns: 'jobs', var: 'minutely' }
  const other: FunctionSpec = { ...minutely, var: 'other' }
  let fence = 0
  const deploy = async (functions: FunctionSpec[]) => {
    const build = { build_id: newId(), project_id, hash: 'h', functions }
    const stored = { size: 1, build_type: 'release', storage_path: 'x', storage_backend: 'disk' } as const
    await projects.handle(at, { type: 'UploadBuild', build: { ...build, ...stored } }, signed)
    fence = (await projects.handle(at, { type: 'DeployBuild', build, fence }, signed)).firstRevision
  }
  await projects.handle(at, { type: 'CreateProject', project_id, name: 'shop' }, signed)
  const alarms = new Alarms()
  const deps = { ...node, directory: node.views.directory, logger: silent }
  void runSaga(fireSchedules(deps), { logger: silent, clock, alarms }, node.signal)
  await deploy([minutely])
  await until(() => alarms.size === 1)
  await projects.handle(at, { type: 'PauseSchedule', ...name }, signed)
  await until(() => alarms.size === 0)
  await deploy([minutely, other])
  await until(() => alarms.size === 1)
  await deploy([other])
  await deploy([minutely, other, { ...other, var: 'third' }])
  await until(() => alarms.size === 2)
  await projects.handle(at, { type: 'ResumeSchedule', ...name }, signed)
  await until(() => alarms.size === 3)
})
schedule.run()
