import * as assert from 'uvu/assert'
import { call, deploy, handle, type Run } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { JOBS } from './jobs.ts'

const server = await startWithOther()
const { api, other } = server
await deploy(api, 'work', { 'jobs.js': JOBS })

const lists = suite('lists of runs')

lists('are newest first and filtered by status and type', async () => {
  const failed = await handle(api, 'fails')
  const sum = await call(api, 'jobs/add', 1, 2)
  const first = async (query: string) => (await api.page<Run>(`/runs?limit=1&${query}`)).data[0]
  assert.equal(await first(''), sum)
  assert.equal(await first('status=failed'), failed)
  assert.equal(await first('type=event'), failed)
  assert.equal(await first('type=call&status=succeeded'), sum)
  assert.is((await api.page(`/runs?type=repl`)).pagination.total, 0)
  assert.is((await api.page(`/runs?type=call&status=failed`)).pagination.total, 0)
  for (const status of ['running', 'pending_retry'])
    assert.is((await api.page(`/runs?status=${status}`)).pagination.total, 0)
})

lists('add up to the statistics', async () => {
  const total = async (query: string) => (await api.page(`/runs?limit=1${query}`)).pagination.total
  assert.equal(await api.get('/runs/stats'), {
    total_runs: await total(''),
    running: 0,
    succeeded: await total('&status=succeeded'),
    failed: await total('&status=failed'),
    cancelled: await total('&status=cancelled'),
  })
  assert.equal(await other.get('/runs/stats'), {
    total_runs: 0,
    running: 0,
    succeeded: 0,
    failed: 0,
    cancelled: 0,
  })
})

lists('cover the time_range', async () => {
  const all = (await api.page('/runs')).pagination.total
  for (const range of ['P1D', 'PT1H', 'P1M', 'P1Y2M3DT4H']) {
    assert.is((await api.page(`/runs?time_range=${range}`)).pagination.total, all)
  }
  await until(async () => (await api.page('/runs?time_range=PT0.1S')).pagination.total === 0)
})

for (const range of ['', '7', 'P', '-P1D', 'PT0S', '1 day', 'P1D;', 'P99999999999Y']) {
  lists(`refuse "${range}" as time_range`, async () => {
    const { status, code, message } = await api.refused(
      'GET',
      `/runs?time_range=${encodeURIComponent(range)}`,
    )
    assert.equal([status, code], [400, 'bad_request'])
    assert.match(message, 'time_range: ')
  })
}

for (const [query, told] of [
  ['status=done', 'status: expected one of running, succeeded, failed, cancelled, pending_retry'],
  ['type=webhook', 'type: expected one of call, event, schedule, run, eval, repl'],
  ['status=failed&status=running', 'status: expected once'],
] as const) {
  lists(`refuse ${query}`, async () => {
    const { status, message } = await api.refused('GET', `/runs?${query}`)
    assert.is(status, 400)
    assert.match(message, told)
  })
}

lists.after(() => server.stop())
lists.run()
