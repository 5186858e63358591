import { isoOf } from '../clock.ts'
import type { RunType } from '../events/run.ts'
import type { Collection } from '../ports/readModels.ts'
import { countOf, type Durations, mergedDurations, percentileOf } from './durations.ts'
import { bucketAt, type Interval, type Period, periodAt, resolutions } from './runBuckets.ts'
import type { CallDayDoc } from './callDays.ts'
import { fullerOf, type RunDayDoc, runDayId } from './runDays.ts'
import { claimsKeptFrom } from './runs.ts'
import { type RunStatsDoc, runStatsId, type Series, statuses, type Tally } from './runStats.ts'

/** The runs that started in one bucket, or in all of them. */
export interface RunPoint extends Readonly<Record<(typeof statuses)[number], number>> {
  readonly total_runs: number
  readonly duration_ms: {
    /** The number of runs that have ended. */
    readonly count: number
    readonly p50: number | null
    readonly p95: number | null
    readonly p99: number | null
  }
}

/** The buckets of a series from one instant (inclusive) to another (exclusive), which both begin a bucket. */
export interface SeriesQuery {
  readonly series: Series
  readonly interval: Interval
  readonly fromMs: number
  readonly toMs: number
  readonly run_type?: RunType | undefined
}

export interface RunSeries {
  readonly total: RunPoint
  /** One for each bucket, also for those without runs, the oldest first. */
  readonly points: readonly (RunPoint & { readonly time: string })[]
}

/** The documents of statistics, which are summaries in `runs`, and that of the days that have expired. */
export interface RunStatsViews {
  readonly callDays: Pick<Collection<CallDayDoc>, 'get'>
  readonly runStats: Pick<Collection<RunStatsDoc>, 'getMany'>
  readonly runDays: Pick<Collection<RunDayDoc>, 'getMany'>
}

/** Reads the statistics of a series: a few documents by their ids, whatever the number of runs. */
export const runSeriesOf = async (
  { callDays, runStats: collection, runDays }: RunStatsViews,
  { series, interval, fromMs, toMs, run_type }: SeriesQuery,
): Promise<RunSeries> => {
  const { bucketMs } = resolutions[interval]
  const starts = Array.from({ length: (toMs - fromMs) / bucketMs }, (_, i) => fromMs + i * bucketMs)
  const idOf = (period: Period): string => runStatsId(series, period)
  const docs = await collection.getMany([...new Set(starts.map((ms) => idOf(periodAt(interval, ms))))])
  const isCounted = interval === 'day' && series.project_id === undefined
  const dayIdOf = (ms: number): string => runDayId({ env_id: series.env_id, day: isoOf(ms).slice(0, 10) })
  const days = isCounted ? await runDays.getMany(starts.map(dayIdOf)) : new Map<string, RunDayDoc>()
  const { expired_before: before } = (await callDays.get(series.env_id)) ?? {}
  const mayEndFrom = before === undefined ? -Infinity : claimsKeptFrom(before)
  const talliesAt = (ms: number): Tally[] => {
    const period = periodAt(interval, ms)
    const doc = docs.get(idOf(period))
    const folded = doc?.period === period.number ? doc.tallies[bucketAt(period, ms)] : undefined
    const types = fullerOf(folded, days.get(dayIdOf(ms)))
    const wanted = run_type === undefined ? Object.values(types) : [types[run_type]]
    const tallies = wanted.filter((tally) => tally !== undefined)
    return ms + bucketMs <= mayEndFrom ? tallies.map(closed) : tallies
  }
  const found = starts.map((ms) => ({ time: isoOf(ms), tallies: talliesAt(ms) }))
  return {
    total: pointOf(found.flatMap(({ tallies }) => tallies)),
    points: found.map(({ time, tallies }) => ({ time, ...pointOf(tallies) })),
  }
}

/** Runs that were open when their facts expired count as failed, because nothing can end them. */
const closed = ({ n, d }: Tally): Tally => {
  const [running = 0, succeeded = 0, failed = 0, cancelled = 0, pending_retry = 0] = n
  return { n: [0, succeeded, failed + running + pending_retry, cancelled, 0], d }
}

const pointOf = (tallies: readonly Tally[]): RunPoint => {
  const [running, succeeded, failed, cancelled, pending_retry] = statuses.map((_, at) =>
    tallies.reduce((sum, { n }) => sum + (n[at] ?? 0), 0),
  ) as [number, number, number, number, number]
  const durations = mergedDurations(tallies.map(({ d }) => d))
  return {
    total_runs: running + succeeded + failed + cancelled + pending_retry,
    running,
    succeeded,
    failed,
    cancelled,
    pending_retry,
    duration_ms: {
      count: countOf(durations),
      p50: rounded(durations, 50),
      p95: rounded(durations, 95),
      p99: rounded(durations, 99),
    },
  }
}

/** A tenth of a millisecond is more exact than the percentile. */
const rounded = (durations: Durations, percent: number): number | null => {
  const ms = percentileOf(durations, percent)
  return ms === null ? null : Math.round(ms * 10) / 10
}
