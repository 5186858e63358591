import Type from 'typebox'
import { clock, isoOf } from '../../clock.ts'
import { timeOf } from '../../commands/audit/moment.ts'
import { projectFor } from '../../commands/projects/projectFor.ts'
import { AppError } from '../../errors.ts'
import {
  type Interval,
  intervals,
  keptFrom,
  resolutions,
  startOfBucket,
} from '../../projections/runBuckets.ts'
import { runSeriesOf } from '../../projections/runSeries.ts'
import type { Series } from '../../projections/runStats.ts'
import type { Views } from '../../projections/views.ts'
import { demandRef } from '../functionRef.ts'
import { item, route } from '../route.ts'
import { RunSeries, RunStats, RunType } from '../schemas.ts'

/** Points in one reply: a day of minutes, two months of hours, four years of days. */
const MAX_POINTS = 1500
/** Points when `from` is omitted. */
const DEFAULT_POINTS: Readonly<Record<Interval, number>> = { minute: 60, hour: 24, day: 30 }

const time = (description: string) =>
  Type.Optional(Type.String({ description, documented: { format: 'date-time' } }))

const query = Type.Object({
  interval: Type.Optional(
    Type.Union(
      intervals.map((interval) => Type.Literal(interval)),
      { description: 'Returns a series with one point per minute, hour or day in UTC' },
    ),
  ),
  from: time('With interval: the first instant of the series; default: an hour, a day or 30 days before to'),
  to: time('With interval: the end of the series, exclusive; default: now'),
  project: Type.Optional(
    Type.String({ description: 'With interval: only runs of this project, by id or name' }),
  ),
  fn: Type.Optional(
    Type.String({ maxLength: 1024, description: 'With project: only runs of this function, as `ns/var`' }),
  ),
  type: Type.Optional(RunType),
})
interface SeriesParameters {
  readonly from?: string
  readonly to?: string
  readonly project?: string
  readonly fn?: string
}

export const runStatsRoute = route({
  method: 'GET',
  path: '/v1/runs/stats',
  operationId: 'getRunStats',
  summary: 'Count runs by status',
  description:
    'Without `interval`, counts the runs that the list of runs contains. With `interval`, returns the runs that started ' +
    'in each minute, hour or day in UTC, by their present status, with percentiles of their durations. A point without ' +
    `runs has zeros. A reply has at most ${MAX_POINTS} points. Minutes are kept for ` +
    `${resolutions.minute.keptDays} days, hours for ${resolutions.hour.keptDays} days, and days for ever; runs that the ` +
    'plan keeps no longer still count, except in the series of a function. Of these, one that had not ended counts as failed.',
  tag: 'Runs',
  needs: { type: 'run', action: 'read' },
  query,
  reply: { kind: 'item', schema: Type.Union([RunStats, RunSeries]) },
  errors: ['not_found'],
  handle: async ({ query: { interval, type, ...parameters }, credential: { env_id }, deps: { views } }) => {
    if (interval === undefined) {
      const [unused] = Object.keys({ ...parameters, ...(type && { type }) })
      if (unused !== undefined)
        throw new AppError('bad_request', `interval: expected minute, hour or day together with ${unused}`)
      return item(await totalsOf(views, env_id))
    }
    const range = rangeOf(interval, parameters)
    await views.settled('callDays', 'runs')
    const series = seriesOf(views, env_id, parameters)
    const { total, points } = await runSeriesOf(views, { series, interval, ...range, run_type: type })
    return item({ interval, from: isoOf(range.fromMs), to: isoOf(range.toMs), total, points })
  },
})

const totalsOf = async (views: Views, env_id: string) => {
  await views.settled('runs')
  const count = async (equal: Record<string, string>) =>
    (await views.runs.find({ equal: { env_id, ...equal }, sort: 'order', limit: 0, offset: 0 })).total
  return {
    total_runs: await count({}),
    running: await count({ status: 'running' }),
    succeeded: await count({ status: 'succeeded' }),
    failed: await count({ status: 'failed' }),
    cancelled: await count({ status: 'cancelled' }),
  }
}

/** A function belongs to a project, whose name may be that of no other (404). Any function may have run in it. */
const seriesOf = (views: Views, env_id: string, { project, fn }: SeriesParameters): Series => {
  if (fn !== undefined) {
    demandRef('fn', fn)
    if (project === undefined) throw new AppError('bad_request', 'project: is required with fn')
  }
  if (project === undefined) return { env_id }
  const { project_id } = projectFor(views.directory, env_id, project)
  return { env_id, project_id, ...(fn !== undefined && { fn }) }
}

/** Returns the buckets that contain the range, the first inclusive and the last exclusive, as milliseconds since 1970. */
const rangeOf = (interval: Interval, { from, to }: SeriesParameters): { fromMs: number; toMs: number } => {
  const now = clock.now()
  const { bucketMs, keptDays } = resolutions[interval]
  const end = to === undefined ? now : Date.parse(timeOf('to', to))
  const toMs = startOfBucket(end - 1, bucketMs) + bucketMs
  const begin =
    from === undefined
      ? Math.max(0, toMs - DEFAULT_POINTS[interval] * bucketMs)
      : Date.parse(timeOf('from', from))
  const fromMs = startOfBucket(begin, bucketMs)
  const kept = keptFrom(interval, now)
  if (begin >= end)
    throw new AppError('bad_request', `from: expected a time before ${isoOf(end)}, got ${isoOf(begin)}`)
  if (fromMs < kept)
    throw new AppError(
      'bad_request',
      `from: expected ${isoOf(kept)} or later, because ${interval}s are kept for ${keptDays} days, got ${isoOf(begin)}; ` +
        `use interval=${interval === 'minute' ? 'hour' : 'day'} for earlier runs`,
    )
  if ((toMs - fromMs) / bucketMs > MAX_POINTS)
    throw new AppError(
      'bad_request',
      `from: expected ${isoOf(toMs - MAX_POINTS * bucketMs)} or later with this to, because a reply has at most ` +
        `${MAX_POINTS} ${interval}s, got ${isoOf(begin)}`,
    )
  return { fromMs, toMs }
}
