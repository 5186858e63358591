import * as assert from 'uvu/assert'
import { call, deploy, handle, handled, publish, runsOf } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { JOBS } from './jobs.ts'
import { isRefused, refusal } from './refusal.ts'

interface Point {
  readonly time: string
  readonly total_runs: number
  readonly running: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
  readonly pending_retry: number
  readonly duration_ms: { count: number; p50: number | null; p95: number | null; p99: number | null }
}
interface Series {
  readonly interval: string
  readonly from: string
  readonly to: string
  readonly total: Omit<Point, 'time'>
  readonly points: readonly Point[]
}

const server = await startWithOther()
const { api, other } = server
const build = await deploy(api, 'work', { 'jobs.js': JOBS })
const { project_id } = build
await api.post('/projects', { name: 'idle' })

await call(api, 'jobs/add', 1, 2)
await call(api, 'jobs/add', 3, 4)
await handle(api, 'fails')
await handled(api, (await publish(api, 'flaky')).event_id, 3)
const waiting = await publish(api, 'svc:call', { fn: 'jobs/wait', args: [600_000] })
const started = await until(async () => (await runsOf(api, waiting.event_id))[0])
await publish(api, 'svc:cancel', { run_id: started.run_id })
await until(async () => (await api.get<{ status: string }>(`/runs/${started.run_id}`)).status === 'cancelled')

const seriesOf = (query: string, of = api): Promise<Series> => of.get<Series>(`/runs/stats?${query}`)
const counts = ({ total }: Series) => {
  const { duration_ms: _, ...rest } = total
  return rest
}
/** Two sums, a failure, a function that fails twice and then succeeds, and a cancelled run. */
const EXPECTED = { total_runs: 7, running: 0, succeeded: 3, failed: 3, cancelled: 1, pending_retry: 0 }

const series = suite('GET /v1/runs/stats with an interval')

for (const interval of ['minute', 'hour', 'day'])
  series(`counts the runs of each ${interval} by status, with their durations`, async () => {
    const found = await seriesOf(`interval=${interval}`)
    assert.equal(counts(found), EXPECTED)
    assert.is(found.interval, interval)
    assert.is(found.points.length, { minute: 60, hour: 24, day: 30 }[interval])
    const { count, p50, p95, p99 } = found.total.duration_ms
    assert.is(count, EXPECTED.total_runs)
    assert.ok(Number(p50) <= Number(p95) && Number(p95) <= Number(p99), JSON.stringify([p50, p95, p99]))
    for (const name of ['total_runs', 'succeeded', 'failed', 'cancelled'] as const)
      assert.is(
        found.points.reduce((sum, point) => sum + point[name], 0),
        EXPECTED[name],
      )
  })

series('has one point for each bucket in UTC, without gaps', async () => {
  const found = await seriesOf('interval=hour&from=2026-05-01T00:30:00Z&to=2026-05-02T00:00:01Z')
  assert.equal([found.from, found.to], ['2026-05-01T00:00:00.000Z', '2026-05-02T01:00:00.000Z'])
  assert.is(found.points.length, 25)
  assert.is(found.points[24]?.time, '2026-05-02T00:00:00.000Z')
  assert.equal(found.points[0], {
    time: '2026-05-01T00:00:00.000Z',
    total_runs: 0,
    running: 0,
    succeeded: 0,
    failed: 0,
    cancelled: 0,
    pending_retry: 0,
    duration_ms: { count: 0, p50: null, p95: null, p99: null },
  })
})

series('accepts dates, and times of any offset', async () => {
  const days = await seriesOf('interval=day&from=2026-05-01&to=2026-05-03')
  assert.equal([days.from, days.to], ['2026-05-01T00:00:00.000Z', '2026-05-03T00:00:00.000Z'])
  const found = await seriesOf('interval=day&from=2026-05-01T00:00:00%2B02:00&to=2026-05-02T00:00:00Z')
  assert.is(found.from, '2026-04-30T00:00:00.000Z')
})

series('counts the runs of a project or function, and of a type', async () => {
  assert.equal(counts(await seriesOf('interval=hour&project=work')), EXPECTED)
  assert.equal(counts(await seriesOf(`interval=day&project=${project_id}`)), EXPECTED)
  assert.is((await seriesOf('interval=hour&project=idle')).total.total_runs, 0)
  const added = await seriesOf('interval=minute&project=work&fn=jobs/add')
  assert.equal([added.total.total_runs, added.total.succeeded], [2, 2])
  assert.is((await seriesOf('interval=hour&project=work&fn=jobs/unknown')).total.total_runs, 0)
  const calls = await seriesOf('interval=hour&type=call')
  assert.equal([calls.total.succeeded, calls.total.cancelled, calls.total.failed], [2, 1, 0])
  assert.is(calls.total.duration_ms.count, 3)
})

series('agrees with the list and the statistics without an interval', async () => {
  const { total_runs, succeeded, failed, cancelled } = EXPECTED
  assert.equal(await api.get('/runs/stats'), { total_runs, running: 0, succeeded, failed, cancelled })
})

series('has nothing of another environment', async () => {
  assert.is((await seriesOf('interval=hour', other)).total.total_runs, 0)
  for (const name of ['work', project_id, 'unknown']) {
    const { status, code } = refusal(await other.send('GET', `/runs/stats?interval=hour&project=${name}`))
    assert.equal([status, code], [404, 'not_found'])
  }
})

const year = new Date().getUTCFullYear()
for (const [query, told] of [
  ['interval=week', /interval/],
  ['from=2026-05-01T00:00:00Z', /^interval: expected minute, hour or day together with from/],
  ['project=work', /^interval: expected .* together with project/],
  ['type=call', /^interval: expected .* together with type/],
  ['interval=hour&from=yesterday', /^from: expected an ISO 8601 time such as .*, got "yesterday"/],
  ['interval=hour&to=2026-13-01', /^to: expected an ISO 8601 time/],
  ['interval=hour&to=2026-05-01T00:00:00', /^to: expected an ISO 8601 time/],
  ['interval=hour&to=-271821-04-20T00:00:00Z', /^to: expected a time from 1970 to 9999/],
  [
    'interval=day&from=2026-05-02T00:00:00Z&to=2026-05-01T00:00:00Z',
    /^from: expected a time before 2026-05-01T/,
  ],
  ['interval=day&from=2026-05-01T00:00:00Z&to=2026-05-01T00:00:00Z', /^from: expected a time before/],
  [
    `interval=day&from=2000-01-01T00:00:00Z`,
    /^from: expected .* or later with this to, .* at most 1500 days/,
  ],
  [
    `interval=minute&from=${year - 1}-01-01T00:00:00Z`,
    /^from: expected .* kept for 4 days.*use interval=hour/,
  ],
  [
    `interval=hour&from=${year - 3}-01-01T00:00:00Z`,
    /^from: expected .* kept for 400 days.*use interval=day/,
  ],
  ['interval=hour&fn=jobs/add', /^project: is required with fn/],
  ['interval=hour&project=work&fn=add', /^fn: expected a function as ns\/var, got "add"/],
  ['interval=hour&type=other', /^type/],
  ['interval=hour&limit=5', /^limit: not a parameter/],
] as const)
  series(`refuses ?${query}`, async () => isRefused(await api.send('GET', `/runs/stats?${query}`), told))

series.after(() => server.stop())
series.run()
