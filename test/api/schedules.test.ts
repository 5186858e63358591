import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type * as schemas from '../../src/api/schemas.ts'
import { newId } from '../../src/ids.ts'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { deploy, ended, type Run } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { addEnvironment, EVERYTHING, startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { as, newSession } from './issuing.ts'
import { connect } from './mcp/client.ts'

type Schedule = Static<typeof schemas.Schedule>
type RequestedRun = Static<typeof schemas.RequestedRun>
interface ReadModel {
  readonly name: string
  readonly rebuild: { readonly state: string; readonly differences: number } | null
}
interface Tick {
  readonly type: string
  readonly data: { readonly cron: string; readonly scheduled_time: string }
}

/** An hour in Berlin that is hours away, so that it does not come during the tests. */
const HOUR = new Date().getUTCHours() < 12 ? 20 : 8
const CRON = `0 ${HOUR} * * *`
const CODE = `import { fn } from 'svc'
export const nightly = fn({ schedule: { cron: '${CRON}', timezone: 'Europe/Berlin' } }, (tick) => tick)
export const each = fn({ schedule: '* * * * * *' }, ({ data }) => data.scheduled_time)
export const other = fn({ schedule: '* * * * * *' }, ({ data }) => data.scheduled_time)`

const dataDir = tempDir()
const [foreignKey = ''] = await addEnvironment(dataDir, 'other', EVERYTHING)
let server: TestServer = await startServer({ dataDir })
await deploy(server.api, 'shop', { 'jobs.js': CODE })

const PATH = '/projects/shop/schedules'
const listed = async (api: Api = server.api): Promise<Schedule[]> => (await api.page<Schedule>(PATH)).data
const named = async (name: string): Promise<Schedule> => {
  const found = (await listed()).find((each) => each.var === name)
  if (!found) throw new Error(`Expected the schedule ${name} in the list`)
  return found
}
const act = async (name: string, action: 'pause' | 'resume'): Promise<Schedule> =>
  server.api.post(`${PATH}/${(await named(name)).schedule_id}/${action}`)
const start = async (name: string): Promise<RequestedRun> =>
  server.api.post(`${PATH}/${(await named(name)).schedule_id}/run`)
/** Waits until a worker has claimed the run, and until it has ended. */
const over = async (run_id: string): Promise<Run> => {
  await until(async () => (await server.api.send('GET', `/runs/${run_id}`)).status === 200)
  return ended(server.api, run_id)
}
/** The ticks of a function that have started a run, in milliseconds since 1970. */
const ticksOf = async (name: string): Promise<number[]> =>
  (await server.api.page<Run>(`/runs?fn=jobs%2F${name}&limit=100`)).data.map(({ requested_at }) =>
    Date.parse(requested_at),
  )
const tickAfter = (name: string, ms: number): Promise<number> =>
  until(async () => (await ticksOf(name)).find((tick) => tick > ms), { timeoutMs: 10_000 })

const schedules = suite('schedules', { timeoutMs: 60_000 })

schedules('are listed with their next time and without a last run', async () => {
  const nightly = await named('nightly')
  assert.equal([nightly.cron, nightly.timezone], [CRON, 'Europe/Berlin'])
  assert.equal([nightly.paused, nightly.paused_at], [false, null])
  assert.equal([nightly.last_run_id, nightly.last_time], [null, null])
  const next = Temporal.Instant.from(nightly.next_time ?? '').toZonedDateTimeISO('Europe/Berlin')
  assert.equal([next.hour, next.minute, next.second], [HOUR, 0, 0])
  assert.ok(next.epochMilliseconds > Date.now() && next.epochMilliseconds < Date.now() + 26 * 3_600_000)
})

schedules('start nothing while they are paused, and only later ticks when they are resumed', async () => {
  await tickAfter('each', 0)
  const paused = await act('each', 'pause')
  const from = Date.now()
  assert.equal([paused.paused, paused.next_time, paused.var], [true, null, 'each'])
  assert.ok(Date.parse(paused.paused_at ?? '') <= from)
  await tickAfter('other', from + 1000)
  const to = Date.now()
  const resumed = await act('each', 'resume')
  assert.equal([resumed.paused, resumed.paused_at], [false, null])
  assert.ok(Date.parse(resumed.next_time ?? '') > to)
  await tickAfter('each', Date.now())
  assert.equal(
    (await ticksOf('each')).filter((tick) => tick > from && tick <= to),
    [],
  )
  const { last_run_id, last_time } = await named('each')
  const last = await server.api.get<Run>(`/runs/${last_run_id}`)
  assert.equal([last.fn, last.run_type, last.requested_at], ['jobs/each', 'schedule', last_time])
  await act('each', 'pause')
  await act('other', 'pause')
})

schedules('are paused once, and resumed once', async () => {
  const first = await act('nightly', 'pause')
  assert.equal(await act('nightly', 'pause'), first)
  assert.equal(await named('nightly'), first)
  const resumed = await act('nightly', 'resume')
  assert.equal(await act('nightly', 'resume'), resumed)
  assert.is(resumed.paused, false)
})

schedules('stay paused over deployments, a restart and a rebuild', async () => {
  const { build_id: _, ...paused } = await act('nightly', 'pause')
  await deploy(server.api, 'shop', { 'jobs.js': `${CODE} // again` })
  const { build_id: __, ...again } = await named('nightly')
  assert.equal(again, paused)
  await deploy(server.api, 'shop', { 'jobs.js': 'export const one = () => 1' })
  assert.equal(await listed(), [])
  await deploy(server.api, 'shop', { 'jobs.js': CODE })
  assert.is((await named('nightly')).paused_at, paused.paused_at)
  await server.stop()
  server = await startServer({ dataDir })
  assert.is((await named('nightly')).paused_at, paused.paused_at)
  const operator = openApi(server.url, openSecrets(readConfig(installation(dataDir))).operatorToken)
  const projections = `${server.url}/operator/projections`
  await operator.post(`${projections}/rebuild`, { names: ['projects'], verify: true })
  const rebuild = await until(async () => {
    const { data } = await operator.page<ReadModel>(projections)
    const found = data.find(({ name }) => name === 'projects')?.rebuild
    return found?.state === 'done' ? found : undefined
  })
  assert.is(rebuild.differences, 0)
  await server.stop()
  server = await startServer({ dataDir })
  assert.is((await named('nightly')).paused_at, paused.paused_at)
})

schedules('are started by hand with the event of a tick, also while they are paused', async () => {
  assert.is((await named('nightly')).paused, true)
  const before = Date.now()
  const { run_id, stream_id, requested_at } = await start('nightly')
  assert.ok(Date.parse(requested_at) >= before && Date.parse(requested_at) <= Date.now())
  const run = await over(run_id)
  assert.equal([run.status, run.run_type, run.stream_id], ['succeeded', 'schedule', stream_id])
  assert.is(run.requested_at, requested_at)
  const { type, data } = run.result as Tick
  assert.equal([type, data], ['svc:schedule', { cron: CRON, scheduled_time: requested_at }])
  const { last_run_id, last_time, paused } = await named('nightly')
  assert.equal([last_run_id, last_time, paused], [run_id, requested_at, true])
})

schedules('are started by hand once for an Idempotency-Key', async () => {
  const path = `${PATH}/${(await named('nightly')).schedule_id}/run`
  const headers = { 'Idempotency-Key': newId() }
  const first = await server.api.send('POST', path, { headers })
  const again = await server.api.send('POST', path, { headers })
  assert.equal([first.status, again.status, again.text], [201, 201, first.text])
  await over((first.json as { data: RequestedRun }).data.run_id)
  const { requested_at } = (first.json as { data: RequestedRun }).data
  assert.is((await ticksOf('nightly')).filter((tick) => tick === Date.parse(requested_at)).length, 1)
})

schedules('started by hand are explained by the credential, and are in the audit', async () => {
  const { run_id } = await start('nightly')
  await over(run_id)
  const { client } = await connect(server.url, server.api.key)
  const why = async (id: string) =>
    JSON.stringify((await client.callTool({ name: 'why', arguments: { run_id: id } })).structuredContent)
  assert.match(await why(run_id), /started by hand, requested at [-\d:.TZ]+ by the api-key [0-9a-f-]{36}/)
  const [tick] = (await server.api.page<Run>('/runs?fn=jobs%2Feach&limit=1')).data
  assert.match(await why(tick?.run_id ?? ''), /Its schedule was due at/)
  await client.close()
  const { token } = await server.api.post<{ token: string }>('/service-keys', {
    permissions: { 'run:*': ['read'] },
  })
  const limited = await openApi(server.url, token).get<{ why: string[] }>(`/runs/${run_id}/why`)
  assert.match(limited.why.join(' '), /Its schedule started it, requested at/) // not: was due
  const audit = (await server.api.page<{ type: string; data: { run_id?: string } }>('/audit?limit=100')).data
  assert.ok(audit.some(({ type, data }) => type === 'RunRequested' && data.run_id === run_id))
  assert.not.ok(audit.some(({ data }) => data.run_id === tick?.run_id))
  for (const type of ['SchedulePaused', 'ScheduleResumed'])
    assert.ok(
      audit.some((fact) => fact.type === type),
      type,
    )
})

schedules('need the permission to execute the build', async () => {
  const { schedule_id } = await named('nightly')
  const reader = as(server.api, await newSession(server.api, { 'build:shop': ['read'] }))
  const executor = as(server.api, await newSession(server.api, { 'build:shop': ['execute'] }))
  assert.ok((await listed(reader)).length > 0)
  for (const action of ['resume', 'run', 'pause']) {
    const path = `${PATH}/${schedule_id}/${action}`
    assert.is((await reader.refused('POST', path)).status, 403, action)
    await executor.post(path)
  }
  assert.is((await executor.refused('GET', PATH)).status, 403)
})

schedules('of another environment, and unknown ones, are a 404', async () => {
  const { schedule_id } = await named('nightly')
  const foreign = openApi(server.url, foreignKey)
  await foreign.post('/projects', { name: 'theirs' })
  for (const action of ['pause', 'resume', 'run']) {
    assert.is((await foreign.refused('POST', `${PATH}/${schedule_id}/${action}`)).status, 404)
    const theirs = `/projects/theirs/schedules/${schedule_id}/${action}`
    assert.is((await foreign.refused('POST', theirs)).status, 404)
    const unknown = await server.api.refused('POST', `${PATH}/${newId()}/${action}`)
    assert.match([unknown.status, unknown.message].join(), /^404,The deployed build has no schedule/)
  }
})

schedules.after(() => server.stop())
schedules.run()
