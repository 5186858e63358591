import type { Cursor } from '../events/event.ts'
import type { DomainEvent } from '../events/index.ts'
import type { RunType } from '../events/run.ts'
import type { Change, Doc, Stored } from '../ports/readModels.ts'
import { bucketOf, type Durations } from './durations.ts'
import { type Cleared, NOTHING } from './projection.ts'
import { bucketAt, endOf, intervals, type Period, periodAt, placeOf } from './runBuckets.ts'
import type { Summary } from './summaries.ts'

/** The order of the counts in a tally. */
export const statuses = ['running', 'succeeded', 'failed', 'cancelled', 'pending_retry'] as const

/** The fields of a run document that statistics use. */
type CountedRun = Readonly<{
  env_id: string
  project_id: string
  fn: string | null
  run_type: RunType
  status: (typeof statuses)[number]
  start_time: string
  stop_time: string | null
  order: string
}>

/** The runs of one type that started in one bucket. */
export interface Tally {
  /** By their present status, in the order of `statuses`. */
  readonly n: readonly number[]
  /** From the start to the end, of those that have ended. */
  readonly d: Durations
}

/** The runs whose statistics are in one series: those of an environment, of a project or of a function. */
export interface Series {
  readonly env_id: string
  readonly project_id?: string
  /** `ns/var`, with its project. */
  readonly fn?: string
}

/** The statistics of one series in one period. */
export type RunStatsDoc = {
  readonly summary_id: string
  readonly summary_of: string
  readonly summary_project: string | null
  /** Its class and the day on which its period ends: the order in which summaries are removed. */
  readonly summary_key: string
  readonly period: number
  /** By bucket and type. */
  readonly tallies: { readonly [bucket: string]: { readonly [T in RunType]?: Tally } }
  /** The position at which an earlier document was removed. Runs that began before it are not counted. */
  readonly after?: Cursor
}

/** Later times, which only a wrong clock has, would be no dates. */
const LAST_MS = Date.parse('9999-12-01T00:00:00Z')

/** The first part of `summary_key`. */
const CLASS = { function: '1', other: '2' } as const
const AFTER_EVERY_CLASS = '3'
export const OTHER_CLASS = CLASS.other

const nameOf = ({ env_id, project_id, fn }: Series): string =>
  [env_id, ...(project_id === undefined ? [] : [project_id]), ...(fn === undefined ? [] : [fn])].join('/')

/** The id of the document of a period. No run has such an id. */
export const runStatsId = (series: Series, period: Period): string =>
  `stats/${placeOf(period)}/${nameOf(series)}`

/** One event's change of one run, for its tallies. */
interface Step {
  readonly cursor: Cursor
  /** The place of the former status in `Counts`; null: the run began. */
  readonly from: number | null
  readonly to: number
  /** The bucket of the duration, if the run has ended now. */
  readonly lasted: number | null
  /** The order of the run, which ends with the position of its begin. */
  readonly order: string
}

interface Sum {
  readonly n: number[]
  readonly d: Map<number, number>
}
const emptySum = (): Sum => ({ n: statuses.map(() => 0), d: new Map() })

/** The steps of similar runs in one batch. */
interface Group {
  readonly series: readonly Series[]
  readonly run_type: RunType
  readonly startMs: number
  readonly steps: Step[]
  /** The effect of all steps. */
  readonly sum: Sum
}

const stepOf = ({ before, after, cursor }: Change<CountedRun>): Step | null => {
  if (!after || before?.status === after.status) return null // a removed run stays counted
  const hasEnded = before?.status === 'running' && after.stop_time !== null
  return {
    cursor,
    from: before ? statuses.indexOf(before.status) : null,
    to: statuses.indexOf(after.status),
    lasted: hasEnded ? bucketOf(Date.parse(after.stop_time) - Date.parse(after.start_time)) : null,
    order: after.order,
  }
}

const addStep = (sum: Sum, { from, to, lasted }: Step): Sum => {
  const { n, d } = sum
  if (from !== null) n[from] = (n[from] ?? 0) - 1
  n[to] = (n[to] ?? 0) + 1
  if (lasted !== null) d.set(lasted, (d.get(lasted) ?? 0) + 1)
  return sum
}

const seriesOf = ({ env_id, project_id, fn }: CountedRun): Series[] => [
  { env_id },
  { env_id, project_id },
  ...(fn === null ? [] : [{ env_id, project_id, fn }]),
]

const grouped = (changes: readonly Change<CountedRun>[]): Iterable<Group> => {
  const groups = new Map<string, Group>()
  for (const change of changes) {
    const step = stepOf(change)
    if (!step || !change.after) continue
    const { env_id, project_id, fn, run_type, start_time } = change.after
    const key = `${start_time.slice(0, 16)} ${run_type} ${env_id} ${project_id} ${fn}`
    let group = groups.get(key)
    if (!group) {
      const startMs = Date.parse(start_time)
      if (!(startMs >= 0 && startMs < LAST_MS)) continue
      group = {
        series: seriesOf(change.after),
        run_type,
        startMs,
        steps: [],
        sum: emptySum(),
      }
      groups.set(key, group)
    }
    group.steps.push(step)
    addStep(group.sum, step)
  }
  return groups.values()
}

/** The groups of one document. */
interface Plan {
  readonly id: string
  readonly series: Series
  period: Period
  groups: Group[]
  cursor: Cursor
}

/** Statistics of runs by series, interval and type, as summaries of the run documents. */
export const summarizeRuns = (changes: readonly Change<CountedRun>[]): ReadonlyMap<string, Summary> => {
  const plans = new Map<string, Plan>()
  for (const group of grouped(changes)) {
    const cursor = group.steps.at(-1)?.cursor ?? ''
    for (const series of group.series) {
      for (const interval of intervals) {
        const period = periodAt(interval, group.startMs)
        const id = runStatsId(series, period)
        const plan = plans.get(id)
        if (!plan) plans.set(id, { id, series, period, groups: [group], cursor })
        else {
          if (period.number > plan.period.number) Object.assign(plan, { period, groups: [] })
          if (period.number === plan.period.number) plan.groups.push(group)
          if (cursor > plan.cursor) plan.cursor = cursor
        }
      }
    }
  }
  return new Map(
    [...plans].map(([id, plan]) => [
      id,
      { cursor: plan.cursor, evolve: (stored: Stored | undefined) => evolved(plan, stored) },
    ]),
  )
}

const evolved = ({ id, series, period, groups }: Plan, stored: Stored | undefined): RunStatsDoc | null => {
  const former = (stored?.doc ?? null) as RunStatsDoc | null
  if (former && former.period > period.number) return former // these buckets are not kept any more
  const after = former ? former.after : stored?.cursor
  const tallies = { ...(former?.period === period.number ? former.tallies : {}) }
  let isChanged = false
  for (const group of groups) {
    const sum = sumAfter(group, { stored: stored?.cursor, after })
    if (!sum) continue
    const bucket = bucketAt(period, group.startMs)
    const types = tallies[bucket]
    tallies[bucket] = { ...types, [group.run_type]: added(types?.[group.run_type], sum) }
    isChanged = true
  }
  if (!isChanged) return former
  const day = new Date(endOf(period) - 1).toISOString().slice(0, 10)
  return {
    summary_id: id,
    summary_of: series.env_id,
    summary_project: series.project_id ?? null,
    summary_key: `${series.fn === undefined ? CLASS.other : CLASS.function}/${day}`,
    period: period.number,
    tallies,
    ...(after !== undefined && { after }),
  }
}

/**
 * The effect of the steps that are newer than what is stored, of runs that began after an earlier document was removed; null
 * if there are none.
 */
const sumAfter = (
  { steps, sum }: Group,
  { stored, after }: { readonly stored: Cursor | undefined; readonly after: Cursor | undefined },
): Sum | null => {
  if (after === undefined && (stored === undefined || (steps[0]?.cursor ?? '') > stored)) return sum
  const left = steps.filter(
    ({ cursor, order }) =>
      (stored === undefined || cursor > stored) &&
      (after === undefined || order.slice(order.indexOf('/') + 1) > after),
  )
  return left.length === 0 ? null : left.reduce(addStep, emptySum())
}

const added = (tally: Tally | undefined, { n, d }: Sum): Tally => {
  const durations: Record<string, number> = { ...tally?.d }
  for (const [bucket, count] of d) durations[bucket] = (durations[bucket] ?? 0) + count
  return { n: statuses.map((_, at) => (tally?.n[at] ?? 0) + (n[at] ?? 0)), d: durations }
}

/**
 * The summaries that a fact removes. Those of an environment or project are removed with it. Those of functions are removed
 * with the calls that the plan does not keep, because the number of functions that ever ran has no other limit.
 */
export const clearedRunStats = (event: DomainEvent): readonly Cleared[] => {
  const all = { sort: 'summary_key', id: ({ summary_id }: Doc) => String(summary_id) }
  switch (event.type) {
    case 'EnvPurged':
      return [{ ...all, equal: { summary_of: event.env_id }, before: AFTER_EVERY_CLASS }]
    case 'ProjectDeleted':
      return [{ ...all, equal: { summary_project: event.project_id ?? '' }, before: AFTER_EVERY_CLASS }]
    case 'CallsExpired':
      return [{ ...all, equal: { summary_of: event.env_id }, before: `${CLASS.function}/${event.before}` }]
    default:
      return NOTHING
  }
}
