import * as assert from 'uvu/assert'
import type { NewEvent } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { newId } from '../../src/ids.ts'
import type { Doc, ReadModels } from '../../src/ports/readModels.ts'
import { Projector } from '../../src/projections/projector.ts'
import type { Interval } from '../../src/projections/runBuckets.ts'
import { runSeriesOf } from '../../src/projections/runSeries.ts'
import type { RunDayDoc } from '../../src/projections/runDays.ts'
import type { RunStatsDoc, Series } from '../../src/projections/runStats.ts'
import { runs } from '../../src/projections/runs.ts'
import { projecting, withWriter } from './projectedNames.ts'
import { runFacts } from './runFacts.ts'

const spec = runs
const MINUTE = 60_000
const ENV: Series = { env_id: 'env' }

type Found = Awaited<ReturnType<typeof runSeriesOf>>
const seriesIn = (
  readModels: ReadModels,
  series: Series,
  [from, to]: readonly [string, string],
  interval: Interval = 'minute',
): Promise<Found> =>
  runSeriesOf(
    {
      callDays: { get: () => Promise.resolve(null) },
      runStats: readModels.reader<RunStatsDoc>(runs),
      runDays: readModels.reader<RunDayDoc>(runs),
    },
    { series, interval, fromMs: Date.parse(from), toMs: Date.parse(to) },
  )

/** The counts that are not zero. */
const briefly = ({ duration_ms, ...point }: Found['total']): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries({ ...point, ended: duration_ms.count }).filter(([, value]) => value !== 0),
  )

const fact = (event: DomainEvent, env_id = 'env'): NewEvent => ({
  id: newId(),
  event,
  metadata: { env_id, correlation_id: 'c' },
})
const everyDocIn = async (readModels: ReadModels): Promise<Doc[]> =>
  (await Array.fromAsync(readModels.reader(runs).scan())).sort((a, b) => {
    const [x, y] = [a, b].map((doc) => String(doc['summary_id'] ?? doc['run_id'])) as [string, string]
    return x < y ? -1 : 1
  })

const stats = projecting('the statistics of runs')

stats('have each run once, in the bucket of its start, by its present status', async (context) => {
  const { store, readModels, run } = context
  const at = (second: string) => `2026-05-01T10:00:${second}.000Z`
  const [ok, bad, retried, waiting, cancelled, running] = [
    runFacts({ run_id: 'ok', start: at('01') }),
    runFacts({ run_id: 'bad', start: at('02') }),
    runFacts({ run_id: 'retried', start: at('03') }),
    runFacts({ run_id: 'waiting', start: at('04') }),
    runFacts({ run_id: 'cancelled', start: at('05') }),
    runFacts({ run_id: 'running', start: '2026-05-01T10:01:00.000Z' }),
  ]
  await store.append(
    'a',
    [
      ...[ok, bad, retried, waiting, cancelled, running].map(({ started }) => started),
      ok.succeeded(90_000),
      bad.failed(10),
      retried.failed(10, at('30')),
      retried.retried(),
      waiting.failed(10, at('30')),
      cancelled.cancelled(10, 'running'),
    ],
    'none',
  )
  const projector = new Projector(spec, { readModels, store })
  void run(projector)
  await projector.reach(await store.head())
  const { total, points } = await seriesIn(readModels, ENV, ['2026-05-01T09:59:00Z', '2026-05-01T10:03:00Z'])
  assert.equal(
    points.map(({ time, ...point }) => [time, briefly(point)]),
    [
      ['2026-05-01T09:59:00.000Z', {}],
      [
        '2026-05-01T10:00:00.000Z',
        { total_runs: 5, succeeded: 1, failed: 2, cancelled: 1, pending_retry: 1, ended: 5 },
      ],
      ['2026-05-01T10:01:00.000Z', { total_runs: 1, running: 1 }],
      ['2026-05-01T10:02:00.000Z', {}],
    ],
  )
  assert.is(total.total_runs, 6)
  assert.equal(points[0]?.duration_ms, { count: 0, p50: null, p95: null, p99: null })
  const { p50, p99 } = total.duration_ms
  assert.ok(Math.abs((p50 ?? 0) - 10) < 0.25, `${p50}`)
  assert.ok(Math.abs((p99 ?? 0) - 90_000) < 90_000 * 0.025, `${p99}`)
})

stats('are those of an environment, a project or a function', async ({ store, readModels, run }) => {
  const start = '2026-05-01T10:00:00.000Z'
  const all = [
    runFacts({ run_id: 'a', start }),
    runFacts({ run_id: 'b', start, fn: 'orders/other' }),
    runFacts({ run_id: 'c', start, project_id: 'blog' }),
    runFacts({ run_id: 'd', start, env_id: 'other' }),
  ]
  await store.append(
    'a',
    all.map(({ started }) => started),
    'none',
  )
  const projector = new Projector(spec, { readModels, store })
  void run(projector)
  await projector.reach(await store.head())
  const count = async (series: Series, interval: Interval) =>
    (await seriesIn(readModels, series, ['2026-05-01T00:00:00Z', '2026-05-02T00:00:00Z'], interval)).total
      .total_runs
  for (const interval of ['minute', 'hour', 'day'] as const) {
    assert.is(await count(ENV, interval), 3)
    assert.is(await count({ env_id: 'other' }, interval), 1)
    assert.is(await count({ env_id: 'env', project_id: 'shop' }, interval), 2)
    assert.is(await count({ env_id: 'env', project_id: 'shop', fn: 'orders/other' }, interval), 1)
    assert.is(await count({ env_id: 'env', project_id: 'blog', fn: 'orders/other' }, interval), 0)
  }
})

stats('cost a number of documents that does not grow with the runs', async ({ store, readModels, run }) => {
  const start = Date.parse('2026-05-01T00:00:00.000Z')
  let writes = 0
  const counting = withWriter(readModels, ({ write }) => ({
    write: (all, checkpoint, options) => {
      writes += options?.summaries?.length ?? 0
      return write(all, checkpoint, options)
    },
  }))
  const facts = Array.from({ length: 2000 }, (_, n) => {
    const { started, succeeded } = runFacts({
      run_id: `r${n}`,
      start: new Date(start + n * 10).toISOString(),
    })
    return [started, succeeded(n % 50)]
  }).flat()
  await store.append('a', facts, 'none')
  const projector = new Projector(spec, { readModels: counting, store })
  void run(projector)
  await projector.reach(await store.head())
  const docs = await everyDocIn(readModels)
  assert.is(docs.filter((doc) => 'summary_id' in doc).length, 9)
  assert.ok(writes <= 9 * Math.ceil(facts.length / 64), `${writes} writes`)
})

stats('of minutes are kept for four days, in a bounded number of documents', async (context) => {
  const { store, readModels, run } = context
  const begin = Date.parse('2026-01-01T00:00:00.000Z')
  const facts = Array.from({ length: 30 * 24 }, (_, hour) => {
    const start = new Date(begin + hour * 60 * MINUTE).toISOString()
    return runFacts({ run_id: `r${hour}`, start }).started
  })
  for (let from = 0; from < facts.length; from += 100)
    await store.append(`a${from}`, facts.slice(from, from + 100), 'none')
  const projector = new Projector(spec, { readModels, store })
  void run(projector)
  await projector.reach(await store.head())
  const days = await seriesIn(readModels, ENV, ['2026-01-01T00:00:00Z', '2026-01-31T00:00:00Z'], 'day')
  assert.equal(new Set(days.points.map(({ total_runs }) => total_runs)), new Set([24]))
  assert.is(days.points.length, 30)
  const hours = await seriesIn(readModels, ENV, ['2026-01-01T00:00:00Z', '2026-01-31T00:00:00Z'], 'hour')
  assert.equal(new Set(hours.points.map(({ total_runs }) => total_runs)), new Set([1]))
  const lately = await seriesIn(readModels, ENV, ['2026-01-27T00:00:00Z', '2026-01-31T00:00:00Z'])
  assert.is(lately.total.total_runs, 96)
  const minutes = (await everyDocIn(readModels)).filter((doc) =>
    /^stats\/minute\/\d+\/env$/.test(String(doc['summary_id'])),
  )
  assert.ok(minutes.length > 96 && minutes.length <= 385, `${minutes.length}`)
})

const daysOf = (readModels: ReadModels, series: Series) =>
  seriesIn(readModels, series, ['2026-05-01T00:00:00Z', '2026-05-02T00:00:00Z'], 'day')

stats('of minutes do not change by a run whose document another period has replaced', async (context) => {
  const { store, readModels, run } = context
  const begin = Date.parse('2026-05-01T10:00:00.000Z')
  const [old, next] = [0, 385 * 15 * MINUTE].map((ms, n) =>
    runFacts({ run_id: `r${n}`, start: new Date(begin + ms).toISOString() }),
  ) as [ReturnType<typeof runFacts>, ReturnType<typeof runFacts>]
  await store.append('a', [old.started], 'none')
  await store.append('b', [next.started], 'none')
  const projector = new Projector(spec, { readModels, store })
  void run(projector)
  await projector.reach(await store.head())
  await store.append('c', [old.succeeded(385 * 15 * MINUTE)], 'none')
  await projector.reach(await store.head())
  const inMinute = (ms: number) =>
    seriesIn(readModels, ENV, [
      new Date(begin + ms).toISOString(),
      new Date(begin + ms + MINUTE).toISOString(),
    ])
  assert.equal(briefly((await inMinute(385 * 15 * MINUTE)).total), { total_runs: 1, running: 1 })
  assert.is((await inMinute(0)).total.total_runs, 0)
  const hours = await seriesIn(readModels, ENV, ['2026-05-01T10:00:00Z', '2026-05-01T11:00:00Z'], 'hour')
  assert.equal(briefly(hours.total), { total_runs: 1, succeeded: 1, ended: 1 })
})

stats('outlive the runs that a plan keeps no longer, except those of functions', async (context) => {
  const { store, readModels, run } = context
  const { started, succeeded } = runFacts({ run_id: 'a', start: '2026-05-01T10:00:00.000Z' })
  await store.append('a', [started, succeeded(10)], 'none')
  await store.append('b', [fact({ type: 'CallsExpired', env_id: 'env', before: '2099-01-01' })], 'none')
  const projector = new Projector(spec, { readModels, store })
  void run(projector)
  await projector.reach(await store.head())
  assert.is(await readModels.reader(runs).get('a'), null)
  assert.is((await daysOf(readModels, ENV)).total.succeeded, 1)
  assert.is((await daysOf(readModels, { env_id: 'env', project_id: 'shop' })).total.succeeded, 1)
  const fn = { env_id: 'env', project_id: 'shop', fn: 'orders/onCreated' }
  assert.is((await daysOf(readModels, fn)).total.succeeded, 0)
})

stats('of a day keep the numbers that were recorded before its facts expired', async (context) => {
  const { store, readModels, run } = context
  const tallies = { event: { n: [0, 40, 2, 0, 0], d: { 107: 42 } } }
  await store.append(
    'a',
    [fact({ type: 'RunDayCounted', env_id: 'env', day: '2026-05-01', tallies })],
    'none',
  )
  const late = runFacts({ run_id: 'late', start: '2026-05-01T23:59:00.000Z' })
  await store.append('b', [late.started, late.succeeded(10)], 'none')
  const next = runFacts({ run_id: 'next', start: '2026-05-02T00:00:00.000Z' })
  await store.append('c', [next.started], 'none')
  const projector = new Projector(spec, { readModels, store })
  void run(projector)
  await projector.reach(await store.head())
  const { points } = await seriesIn(readModels, ENV, ['2026-05-01T00:00:00Z', '2026-05-03T00:00:00Z'], 'day')
  assert.equal(
    points.map(({ total_runs, succeeded, failed, running }) => [total_runs, succeeded, failed, running]),
    [
      [42, 40, 2, 0],
      [1, 0, 0, 1],
    ],
  )
})

stats('are removed with their project, and with their environment', async (context) => {
  const { store, readModels, run } = context
  const start = '2026-05-01T10:00:00.000Z'
  const open = runFacts({ run_id: 'a', start })
  await store.append('a', [open.started, runFacts({ run_id: 'b', start, env_id: 'other' }).started], 'none')
  await store.append('b', [fact({ type: 'ProjectDeleted', project_id: 'shop', build_ids: [] })], 'none')
  const another = runFacts({ run_id: 'another', start, fn: 'orders/other' })
  await store.append('c', [open.succeeded(10)], 'none')
  const projector = new Projector(spec, { readModels, store })
  void run(projector)
  await projector.reach(await store.head())
  const ofProject = async () =>
    (await everyDocIn(readModels)).filter(
      (doc) => doc['summary_project'] === 'shop' && doc['summary_of'] === 'env',
    )
  assert.equal(await ofProject(), [])
  assert.is((await daysOf(readModels, ENV)).total.succeeded, 1)
  await store.append('x', [another.started, another.succeeded(10)], 'none') // its worker had begun earlier
  await projector.reach(await store.head())
  assert.equal(briefly((await daysOf(readModels, { env_id: 'env', project_id: 'shop' })).total), {
    total_runs: 1,
    succeeded: 1,
    ended: 1,
  })
  await store.append('d', [fact({ type: 'EnvPurged', env_id: 'env', final: false })], 'none')
  await store.append('e', [runFacts({ run_id: 'late', start }).started], 'none')
  await projector.reach(await store.head())
  assert.is((await daysOf(readModels, ENV)).total.total_runs, 1)
  const left = (await everyDocIn(readModels)).filter((doc) => doc['summary_of'] === 'env')
  assert.equal(
    new Set(left.map((doc) => JSON.stringify(Object.keys(doc['tallies'] as object)).length > 2)),
    new Set([true]),
  )
  await store.append('f', [fact({ type: 'EnvPurged', env_id: 'env', final: true })], 'none')
  await projector.reach(await store.head())
  assert.equal(
    (await everyDocIn(readModels)).filter((doc) => doc['summary_of'] === 'env'),
    [],
  )
  assert.is((await daysOf(readModels, { env_id: 'other' })).total.total_runs, 1)
})

stats.run()
