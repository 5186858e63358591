import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import * as assert from 'uvu/assert'
import { clock, virtualClock } from '../../src/clock.ts'
import { startService, type ServiceOptions, type TestService } from '../../src/testkit/index.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'

const NOW = '2026-03-01T02:30:00.000Z'

const source = `
import { call, context, emit, fn, run, send } from 'svc'
export const onCreated = fn({ 'on-event': 'order:created' }, async ({ data, timestamp }) => {
  await send('order:paid', { id: data.id })
  return { timestamp, key: (await context('KEY')).length, twice: await run('orders/twice', data.id) }
})
export const twice = n => 2 * n
export const onPaid = fn({ 'on-event': 'order:paid' }, ({ data }) => call('orders/twice', data.id).then(() => 'paid'))
let failures = 0
export const flaky = fn({ 'on-event': 'flaky', retry: { attempts: 3, delay: 60_000 } }, ({ data }) => {
  if (failures++ < data.failures) throw new Error('again')
  return failures
})
export const never = fn({ 'on-event': 'never' }, () => new Promise(() => {}))
export const nightly = fn({ schedule: '0 3 * * *' }, ({ data, timestamp }) => ({ at: data.scheduled_time, timestamp }))
export const hourly = fn({ schedule: { cron: '15 * * * *', timezone: 'Europe/Berlin' } }, async ({ data }) => {
  await send('hour', data.scheduled_time)
})
export const onHour = fn({ 'on-event': 'hour' }, ({ data }) => data)
`

const project = (name = 'orders'): string => {
  const dir = tempDir()
  mkdirSync(join(dir, 'src'))
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ name, type: 'module' }))
  writeFileSync(join(dir, 'src/orders.ts'), source)
  return dir
}

const started = (more: ServiceOptions = {}): Promise<TestService> =>
  startService({ dir: project(), context: { KEY: 'four' }, now: NOW, ...more })

const refusalOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: unknown) => (error as Error).message,
  )

const tests = suite('startService', { timeoutMs: 60_000 })

tests('deploys a folder, and an event settles with everything that it starts', async () => {
  await using service = await started()
  const runs = await service.send('order:created', { id: 21 }).settled()
  assert.equal(runs.map(({ fn, status }) => `${fn} ${status}`).sort(), [
    'orders/onCreated succeeded',
    'orders/onPaid succeeded',
    'orders/twice succeeded',
    'orders/twice succeeded',
  ])
  const created = runs.find(({ fn }) => fn === 'orders/onCreated')
  assert.equal(created?.result, { timestamp: NOW, key: 4, twice: 42 })
  assert.is(created?.project_name, 'orders')
  assert.is(await service.client.call('orders/twice', 4).result(), 8)
})

tests('schedules fire at their times and in their order, and nothing fires by itself', async () => {
  await using service = await started()
  assert.equal(await service.advance(0), [])
  const runs = await service.advance('2026-03-01T05:00:00Z')
  assert.equal(
    runs.map(({ fn, start_time }) => `${fn} ${start_time}`),
    [
      'orders/nightly 2026-03-01T03:00:00.000Z',
      'orders/hourly 2026-03-01T03:15:00.000Z',
      'orders/onHour 2026-03-01T03:15:00.000Z',
      'orders/hourly 2026-03-01T04:15:00.000Z',
      'orders/onHour 2026-03-01T04:15:00.000Z',
    ],
  )
  assert.equal(runs[0]?.result, { at: '2026-03-01T03:00:00.000Z', timestamp: '2026-03-01T03:00:00.000Z' })
  assert.is(service.now.toISOString(), '2026-03-01T05:00:00.000Z')
  const day = await service.advance(24 * 3_600_000)
  assert.is(day.filter(({ fn }) => fn === 'orders/nightly').length, 1)
  assert.is(day.filter(({ fn }) => fn === 'orders/hourly').length, 24)
})

tests('a paused schedule does not fire, and a resumed one fires again', async () => {
  await using service = await started()
  const list = { path: { project: 'orders' } }
  const { data } = await service.client.request('GET /v1/projects/{project}/schedules', list)
  const [schedule_id = ''] = data.filter((each) => each.var === 'nightly').map((each) => each.schedule_id)
  const at = { path: { project: 'orders', schedule_id } }
  const nightly = (runs: readonly { readonly fn: string | null }[]) =>
    runs.filter(({ fn }) => fn === 'orders/nightly').length
  await service.client.request('POST /v1/projects/{project}/schedules/{schedule_id}/pause', at)
  assert.is(nightly(await service.advance(24 * 3_600_000)), 0)
  await service.client.request('POST /v1/projects/{project}/schedules/{schedule_id}/resume', at)
  assert.is(nightly(await service.advance(24 * 3_600_000)), 1)
})

tests('retries wait for the clock and follow their delays', async () => {
  await using service = await started()
  const [first, ...others] = await service.send('flaky', { failures: 2 }).settled()
  assert.equal([first?.status, others.length], ['pending_retry', 0])
  assert.is(first?.retry_at, '2026-03-01T02:31:00.000Z')
  assert.equal(await service.advance(59_999), [])
  const [second] = await service.advance(1)
  assert.equal([second?.attempt, second?.status], [2, 'pending_retry'])
  const [third] = await service
    .advance(3_600_000)
    .then((runs) => runs.filter(({ fn }) => fn === 'orders/flaky'))
  assert.equal(
    [third?.attempt, third?.status, third?.result, third?.start_time],
    [3, 'succeeded', 3, '2026-03-01T02:32:00.000Z'],
  )
})

tests('no retry is waited for after its project was deleted', async () => {
  await using service = await started()
  await service.send('flaky', { failures: 9 }).settled()
  const retrying = await service.client.runs.list({ status: 'pending_retry' })
  assert.is(retrying.data.length, 1)
  await service.client.request('DELETE /v1/projects/{project}', { path: { project: 'orders' } })
  await until(async () => (await service.client.runs.list({ status: 'failed' })).data.length === 1)
  assert.equal(await service.advance(3_600_000), [])
})

tests('accepts a zip, and webhooks and sessions follow the clock', async () => {
  const { bytes } = await zipBuild({
    'a.js': `import { fn } from 'svc'\nexport const hook = fn({ webhook: { service: 's', path: '/p' } }, r => ({ got: r.body }))`,
  })
  await using service = await startService({ zip: bytes })
  const { data } = await service.client.request('GET /v1/projects/{project}/webhooks', {
    path: { project: 'test' },
  })
  const reply = await fetch(data[0]?.url ?? '', { method: 'POST', body: '{"a":1}' })
  assert.equal(await reply.json(), { got: { a: 1 } })
  const { token } = await service.client.request('POST /v1/sessions', {
    body: { permissions: { 'run:*': ['read'] }, expires_in: 60 },
  })
  const status = () =>
    fetch(`${service.url}/v1/runs`, { headers: { Authorization: `Bearer ${token}` } }).then(
      (got) => got.status,
    )
  assert.is(await status(), 200)
  await service.advance(61_000)
  assert.is(await status(), 401)
})

tests('a run that does not end is named', async () => {
  await using service = await started({ timeoutMs: 300 })
  const sent = service.send('never')
  await until(async () => (await service.client.runs.list({ status: 'running' })).data.length === 1)
  assert.match(await refusalOf(sent.settled()), /within 300 ms; in progress: run orders\/never/)
})

tests('wrong options are refused, and a failed start leaves nothing behind', async () => {
  const dir = project()
  for (const [options, message] of [
    [{}, 'expected dir or zip, got neither'],
    [{ dir, zip: new Uint8Array() }, 'expected dir or zip, got both'],
    [{ dir, contxt: {} }, 'startService(options): expected the key context, got "contxt"'],
    [{ dir, now: 'soon' }, 'now: expected a Date'],
    [{ dir, timeoutMs: 0 }, 'timeoutMs: expected milliseconds above 0, got 0'],
    [{ dir, env: { PORT: '1' } }, 'env.PORT: expected a variable that the test kit does not set'],
    [{ dir, log: 'all' }, 'log: expected one of debug, info, warn, error, got all'],
    [{ dir: join(dir, 'none') }, 'FOLDER: expected a folder'],
    [{ dir, env: { SVC_LOG_LEVEL: 'loud' } }, 'SVC_LOG_LEVEL'],
    [{ zip: new Uint8Array(3) }, 'zip'],
  ] as const)
    assert.ok((await refusalOf(startService(options as ServiceOptions))).includes(message), message)
  assert.not(virtualClock.isStopped)
})

tests('one service runs at a time, and the clock runs again after stop', async () => {
  const service = await started()
  assert.is(clock.iso(), NOW)
  assert.match(await refusalOf(started()), 'expected one service at a time')
  await Promise.all([service.stop(), service.stop()])
  assert.not(virtualClock.isStopped)
  assert.match(await refusalOf(service.advance(1)), 'The service was stopped')
  await (await started()).stop()
})

tests('time does not go back, and a mistake of scale is refused', async () => {
  await using service = await started()
  assert.match(await refusalOf(service.advance('2026-03-01T02:00:00Z')), 'advance: expected a time from')
  assert.match(await refusalOf(service.advance(-1)), 'advance: expected a time from')
  assert.match(await refusalOf(service.advance(Infinity)), 'advance(ms): expected')
})

tests('stop leaves no process, handle or file, so the process of the test ends', async () => {
  const kit = new URL('../../src/testkit/index.ts', import.meta.url).href
  const program = `
    const { startService } = await import(${JSON.stringify(kit)})
    const service = await startService({ dir: ${JSON.stringify(project())}, context: { KEY: 'k' } })
    await service.send('order:created', { id: 1 }).settled()
    await service.stop()
    console.log(JSON.stringify(process.getActiveResourcesInfo()))`
  const TMPDIR = tempDir()
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    env: { ...process.env, TMPDIR },
  })
  const held = JSON.parse(stdout) as string[]
  for (const kind of ['TCPServerWrap', 'TCPSocketWrap', 'ProcessWrap', 'MessagePort', 'Worker'])
    assert.not(held.includes(kind), kind)
  assert.equal(readdirSync(TMPDIR), [])
})

tests.run()
