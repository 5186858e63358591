import * as assert from 'uvu/assert'
import { clock, isoOf } from '../../src/clock.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { AppError } from '../../src/errors.ts'
import type { FunctionSpec } from '../../src/events/project.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import { scheduleIdOf } from '../../src/commands/runs/fireTick.ts'
import { Alarms } from '../../src/sagas/alarms.ts'
import { fireSchedules } from '../../src/sagas/fireSchedules.ts'
import { runSaga } from '../../src/sagas/runSaga.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { MortalNodes, nothingStored } from './mortalNodes.ts'
import { type Node, openNode } from '../support/openNode.ts'
import { MINUTE, HOUR, clockInMinute, everyMinute, deployed, requestedIn, tickOf, saga } from './schedules.ts'
import { running } from './running.ts'

const schedule = suite<{ node: Node }>('a schedule')
schedule.before.each(async (context) => {
  context.node = await openNode()
})
schedule.after.each(({ node }) => node.close())

schedule('fires a missed tick late, with its scheduled time as input', async ({ node }) => {
  const { directory, project_id } = await deployed([everyMinute], 10 * MINUTE)
  const began = clock.now()
  saga({ ...node, store: nothingStored, directory })
  const first = await until(async () => (await requestedIn(node))[0])
  const { cron, scheduled_time } = tickOf(first)
  assert.is(cron, '* * * * *')
  assert.is(Date.parse(scheduled_time) % MINUTE, 0)
  assert.ok(Date.parse(scheduled_time) > began - MINUTE)
  assert.ok(Date.parse(scheduled_time) <= clock.now())
  assert.is(first.run_type, 'schedule')
  assert.is(first.project_id, project_id)
  assert.equal(first.retry, { attempts: 2, delay: 10 })
  assert.equal(await node.typesIn(first.stream_id), ['StreamCreated', 'RunRequested'])
})

schedule('fires once, although the alarms of many nodes ring', async ({ node }) => {
  const { project_id } = await deployed([], 0)
  const { directory } = await deployed([everyMinute], 10 * MINUTE, project_id)
  const nodes = Array.from({ length: 4 }, () => {
    const aggregates = openAggregates(node.store)
    let rung = 0
    const { streams } = aggregates
    const handle = (async (...args: Parameters<typeof streams.handle>) => {
      const handled = await streams.handle(...args)
      rung++
      return handled
    }) as typeof streams.handle
    const alarms = saga({
      ...node,
      store: nothingStored,
      aggregates: { streams: { handle } as typeof streams },
      directory,
    })
    return { alarms, rung: () => rung }
  })
  await until(() => nodes.every(({ rung }) => rung() > 0))
  const found = await requestedIn(node)
  assert.is(new Set(found.map(({ stream_id }) => stream_id)).size, found.length)
  assert.ok(found.length <= 2, 'the minute may have turned')
})

schedule('does not fire for the time before its build was deployed', async ({ node }) => {
  const since = clock.now()
  const { directory } = await deployed([everyMinute], 0)
  const alarms = saga({ ...node, store: nothingStored, directory })
  await until(() => alarms.size === 1)
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  for (const asked of await requestedIn(node)) {
    assert.ok(Date.parse(tickOf(asked).scheduled_time) > since)
  }
})

schedule('is retried when its tick cannot be stored', async ({ node }) => {
  const { directory } = await deployed([everyMinute], 10 * MINUTE)
  let calls = 0
  const handle = ((...args: Parameters<typeof node.aggregates.streams.handle>) => {
    if (++calls < 3) return Promise.reject(new AppError('unavailable', 'down'))
    return node.aggregates.streams.handle(...args)
  }) as typeof node.aggregates.streams.handle
  const aggregates = { streams: { handle } as typeof node.aggregates.streams }
  saga({ ...node, store: nothingStored, aggregates, directory })
  await until(async () => (await requestedIn(node)).length > 0)
  assert.ok(calls >= 3)
})

schedule('skips a tick that could not be stored within its window, and continues', async ({ node }) => {
  const { directory } = await deployed([everyMinute], 10 * MINUTE)
  const warned: string[] = []
  const logger = { ...silent, warn: (message: string) => void warned.push(message) }
  let [isAway, shift] = [true, 0]
  const handle = ((...args: Parameters<typeof node.aggregates.streams.handle>) => {
    if (!isAway) return node.aggregates.streams.handle(...args)
    isAway = false
    shift = 9 * HOUR // the event store answers again after nine hours
    return Promise.reject(new AppError('unavailable', 'down'))
  }) as typeof node.aggregates.streams.handle
  const now = () => clock.now() + shift
  const shown = { now, monotonic: clock.monotonic }
  const alarms = new Alarms({ clock: shown, lookEveryMs: 5 })
  const aggregates = { streams: { handle } as typeof node.aggregates.streams }
  const began = clock.now()
  void runSaga(
    fireSchedules({ ...node, store: nothingStored, aggregates, directory, logger, now }),
    { logger, clock: shown, alarms },
    node.signal,
  )
  const first = await until(async () => (await requestedIn(node))[0])
  assert.ok(warned.includes('A tick was skipped'), warned.join(', '))
  assert.ok(Date.parse(tickOf(first).scheduled_time) >= began + 9 * HOUR - 2 * MINUTE)
})

schedule('fires each tick once on three nodes, through deaths of the node that fires', async ({ node }) => {
  const { directory } = await deployed([everyMinute], 10 * MINUTE)
  const TICKS = 12
  const nodes = new MortalNodes(node, directory)
  nodes.shift = MINUTE - (clock.now() % MINUTE) // so that a minute turns only when the test moves the clock
  nodes.startAll()
  const last = () => new Date(Math.floor(nodes.now() / MINUTE) * MINUTE).toISOString()
  const timesIn = async () => (await requestedIn(node)).map((asked) => tickOf(asked).scheduled_time)
  await until(async () => (await timesIn()).includes(last()))
  for (let n = 0; n < TICKS; n++) {
    nodes.fates.push(n % 2 === 0 ? 'before' : 'after')
    nodes.shift += MINUTE
    await until(async () => nodes.fates.length === 0 && (await timesIn()).includes(last()))
    nodes.startAll()
  }
  const times = (await timesIn()).toSorted()
  assert.is(new Set(times).size, times.length, `a tick fired twice: ${times.join(', ')}`)
  const minutes = times.map((time) => Date.parse(time) / MINUTE)
  assert.equal(
    minutes,
    minutes.map((_, n) => (minutes[0] ?? 0) + n),
  )
  assert.ok(minutes.length > TICKS)
  for (const { stream_id } of await requestedIn(node))
    assert.equal(await node.typesIn(stream_id), ['StreamCreated', 'RunRequested'])
})

/** New York skips 02:00 to 03:00 at the first time, and repeats 01:00 to 02:00 between the second and the third. */
const [GAP, FIRST, SECOND] = [
  '2027-03-14T07:00:00.000Z',
  '2027-11-07T05:30:00.000Z',
  '2027-11-07T06:30:00.000Z',
]

schedule(
  'fires each tick once on three nodes when the clocks change, although a node dies at each',
  async ({ node }) => {
    const at = (name: string, cron: string, timezone = 'America/New_York'): FunctionSpec => ({
      ns: 'jobs',
      var: name,
      schedule: { cron, timezone },
    })
    const { directory } = await deployed(
      [
        at('inGap', '30 2 * * *'),
        at('twiceInGap', '0,30 2 * * *'),
        at('inOverlap', '30 1 * * *'),
        at('halfHours', '*/30 * * * *'),
        at('minutes', '* * * * *', 'UTC'),
      ],
      10 * MINUTE,
    )
    const nodes = new MortalNodes(node, directory)
    const moveTo = (time: string, more: number) => (nodes.shift = Date.parse(time) + more - clock.now())
    moveTo(GAP, -5000)
    nodes.startAll()
    const fired = async (): Promise<readonly string[]> =>
      (await requestedIn(node)).map(
        (asked) =>
          `${asked.target && 'var' in asked.target ? asked.target.var : ''} ${tickOf(asked).scheduled_time}`,
      )
    const due: Readonly<Record<string, readonly string[]>> = {
      [GAP]: ['inGap', 'twiceInGap', 'halfHours', 'minutes'],
      [FIRST]: ['inOverlap', 'halfHours', 'minutes'],
      [SECOND]: ['halfHours', 'minutes'],
    }
    for (const [n, [time, names]] of Object.entries(due).entries()) {
      moveTo(time, -5000)
      nodes.startAll()
      nodes.fates.push(n % 2 === 0 ? 'before' : 'after')
      moveTo(time, 500)
      await until(async () => {
        const found = await fired()
        return nodes.fates.length === 0 && names.every((name) => found.includes(`${name} ${time}`))
      })
    }
    const found = (await fired()).toSorted()
    assert.is(new Set(found).size, found.length, `a tick fired twice: ${found.join(', ')}`)
    const others = found.filter((tick) => !tick.startsWith('minutes '))
    const expected = Object.entries(due).flatMap(([time, names]) => names.map((name) => `${name} ${time}`))
    assert.equal(others, expected.filter((tick) => !tick.startsWith('minutes ')).toSorted())
  },
)

schedule('skips a tick that exceeds the quota, and continues', async ({ node }) => {
  const { directory } = await deployed([everyMinute], 10 * MINUTE)
  const warned: string[] = []
  const logger = { ...silent, warn: (message: string) => void warned.push(message) }
  const quotas = { checkRun: () => Promise.reject(new AppError('quota_exceeded', 'full')) }
  const alarms = saga({ ...node, store: nothingStored, directory, quotas, logger })
  await until(() => warned.length > 0)
  assert.equal(await requestedIn(node), [])
  assert.equal(warned[0], 'A tick was skipped')
  await until(() => alarms.size === 1)
})

schedule('does not stop the others when it cannot be read', async ({ node }) => {
  const broken: FunctionSpec = { ns: 'jobs', var: 'broken', schedule: { cron: 'every day', timezone: 'UTC' } }
  const { directory } = await deployed([broken, everyMinute], 10 * MINUTE)
  const warned: string[] = []
  const logger = { ...silent, warn: (message: string) => void warned.push(message) }
  saga({ ...node, store: nothingStored, directory, logger })
  await until(async () => (await requestedIn(node)).length > 0)
  assert.is(warned.length, 1)
})

schedule('ends when its build is no longer deployed', async ({ node }) => {
  const signed = { correlation_id: 'test', env_id: 'env' }
  const project_id = newId()
  const at = streamOf.project(project_id)
  const late: FunctionSpec = { ...everyMinute, schedule: { cron: '0 0 1 1 *', timezone: 'UTC' } }
  let fence = 0
  const deploy = async (functions: FunctionSpec[]) => {
    const build = { build_id: newId(), project_id, hash: 'h', functions }
    const stored = { size: 1, build_type: 'release', storage_path: 'x', storage_backend: 'disk' } as const
    await node.aggregates.projects.handle(at, { type: 'UploadBuild', build: { ...build, ...stored } }, signed)
    const { firstRevision } = await node.aggregates.projects.handle(
      at,
      { type: 'DeployBuild', build, fence },
      signed,
    )
    fence = firstRevision
  }
  await node.aggregates.projects.handle(at, { type: 'CreateProject', project_id, name: 'shop' }, signed)
  const alarms = saga({ ...node, directory: node.views.directory })
  await deploy([late])
  await until(() => alarms.size === 1)
  await deploy([])
  await until(() => alarms.size === 0)
  await deploy([late, { ...late, var: 'other' }])
  await until(() => alarms.size === 2)
  await node.aggregates.projects.handle(at, { type: 'DeleteProject', project_id }, signed)
  await until(() => alarms.size === 0)
})

schedule('fires a tick that was due right before a redeploy', async ({ node }) => {
  const { directory, project_id } = await deployed([everyMinute], 10 * MINUTE)
  const shown = clockInMinute()
  const { projects, projectById } = directory
  let isRedeployed = false
  let changed = (_: string): void => {}
  const redeployed = {
    env: (id: string) => directory.env(id),
    usedSince: () => 0,
    orgIdOf: (id: string) => directory.orgIdOf(id),
    reach: () => Promise.resolve(),
    projects: () => projects.call(directory),
    projectById: (id: string) => {
      const project = projectById.call(directory, id)
      if (!project?.deployed) return project
      return { ...project, deployed: { ...project.deployed, since: isoOf(shown.now()) } }
    },
    onChange: (listener: (id: string) => void) => {
      changed = listener
      return () => {}
    },
  }
  const { streams } = node.aggregates
  /** The first attempt to store the tick fails, and its build is replaced before the next one. */
  const handle = ((...args: Parameters<typeof streams.handle>) => {
    if (isRedeployed) return streams.handle(...args)
    isRedeployed = true
    changed(project_id)
    return Promise.reject(new AppError('unavailable', 'down'))
  }) as typeof streams.handle
  saga({
    ...node,
    store: nothingStored,
    aggregates: { streams: { handle } as typeof streams },
    directory: redeployed,
    shown,
  })
  await until(async () => (await requestedIn(node)).length > 0)
})

schedule('of an environment that is still being imported does not fire', async ({ node }) => {
  const { directory } = await deployed([everyMinute], 10 * MINUTE, newId(), [])
  const { inputs, carryOut } = fireSchedules({ ...node, store: nothingStored, directory, logger: silent })
  for await (const input of inputs(node.signal)) {
    if (input.type !== 'deployed') continue
    const [due] = input.schedules
    assert.ok(due)
    if (due) assert.is((await carryOut({ schedule: due, at: clock.now() }, running))?.type, 'fired')
    break
  }
  assert.equal(await requestedIn(node), [])
})

schedule('does not fire for the time before the end of an import', async ({ node }) => {
  const imported = clock.now()
  const { directory } = await deployed([everyMinute], 10 * MINUTE, newId(), [
    { env_id: 'env', org_id: 'org', name: 'dev', imported_at: isoOf(imported) },
  ])
  const { inputs, carryOut } = fireSchedules({ ...node, store: nothingStored, directory, logger: silent })
  for await (const input of inputs(node.signal)) {
    if (input.type !== 'deployed') continue
    const [schedule] = input.schedules
    assert.ok(schedule)
    if (!schedule) break
    for (const at of [imported - 1000, imported + 1000])
      assert.is((await carryOut({ schedule, at }, running))?.type, 'fired')
    const times = (await requestedIn(node)).map((asked) => Date.parse(tickOf(asked).scheduled_time))
    assert.equal(times, [imported + 1000])
    break
  }
})

schedule('keeps its id over redeploys', () => {
  assert.is(scheduleIdOf('p', 'jobs', 'sweep'), scheduleIdOf('p', 'jobs', 'sweep'))
  assert.is.not(scheduleIdOf('p', 'jobs', 'sweep'), scheduleIdOf('q', 'jobs', 'sweep'))
})
schedule.run()
