import type { Cursor } from '../events/event.ts'
import type { DomainEvent } from '../events/index.ts'
import type { RunType } from '../events/run.ts'
import type { Change, Doc, Stored } from '../ports/readModels.ts'
import { bucketOf, type Durations } from './durations.ts'
import { type Cleared, NOTHING } from './projection.ts'
import { bucketAt, endOf, intervals, type Period, periodAt, placeOf } from './runBuckets.ts'
import type { Summarizer, Summary } from './summaries.ts'

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
export const runStatsId = (series: Series, period: Period): string => idAt(placeOf(period), nameOf(series))

const idAt = (place: string, name: string): string => `stats/${place}/${name}`

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

/** The groups of one document, which its cursor and its fold read when all changes are known. */
class Plan implements Summary {
  readonly id: string
  readonly series: Series
  readonly groups: Group[] = []
  /** The latest period of the groups. */
  period: Period

  constructor(id: string, series: Series, period: Period) {
    this.id = id
    this.series = series
    this.period = period
  }

  add(group: Group, period: Period): void {
    if (period.number > this.period.number) this.period = period
    this.groups.push(group)
  }

  get cursor(): Cursor {
    return this.groups.reduce((newest, { steps }) => {
      const cursor = steps.at(-1)?.cursor ?? ''
      return cursor > newest ? cursor : newest
    }, '')
  }

  readonly evolve = (stored: Stored | undefined): RunStatsDoc | null => evolved(this, stored)
}

/** Statistics of runs by series, interval and type, as summaries of the run documents. */
export const summarizeRuns = (): Summarizer<CountedRun> => {
  const groups = new Map<string, Group>()
  const plans = new Map<string, Plan>()

  const begin = (run: CountedRun): Group | null => {
    const startMs = Date.parse(run.start_time)
    if (!(startMs >= 0 && startMs < LAST_MS)) return null
    const group: Group = { run_type: run.run_type, startMs, steps: [], sum: emptySum() }
    const periods = intervals.map((interval) => periodAt(interval, startMs))
    const places = periods.map(placeOf)
    for (const series of seriesOf(run)) {
      const name = nameOf(series)
      for (const [at, period] of periods.entries()) {
        const id = idAt(places[at] as string, name)
        const plan = plans.get(id) ?? new Plan(id, series, period)
        plans.set(id, plan)
        plan.add(group, period)
      }
    }
    return group
  }

  return {
    add(change) {
      const step = stepOf(change)
      if (!step || !change.after) return
      const { env_id, project_id, fn, run_type, start_time } = change.after
      const key = `${start_time.slice(0, 16)} ${run_type} ${env_id} ${project_id} ${fn}`
      const group = groups.get(key) ?? begin(change.after)
      if (!group) return
      groups.set(key, group)
      group.steps.push(step)
      addStep(group.sum, step)
    },
    summaries: plans,
  }
}

/** The groups of earlier periods, whose buckets are not kept any more, change only the cursor. */
const evolved = ({ id, series, period, groups }: Plan, stored: Stored | undefined): RunStatsDoc | null => {
  const former = (stored?.doc ?? null) as RunStatsDoc | null
  if (former && former.period > period.number) return former // these buckets are not kept any more
  const after = former ? former.after : stored?.cursor
  const totals = new Map<string, Total>()
  for (const group of groups) {
    if (periodAt(period.interval, group.startMs).number !== period.number) continue
    const sum = sumAfter(group, { stored: stored?.cursor, after })
    if (sum) addTo(totals, { bucket: bucketAt(period, group.startMs), run_type: group.run_type, sum })
  }
  if (totals.size === 0) return former
  const tallies = { ...(former?.period === period.number ? former.tallies : {}) }
  for (const { bucket, run_type, sum } of totals.values()) {
    const types = tallies[bucket]
    tallies[bucket] = { ...types, [run_type]: added(types?.[run_type], sum) }
  }
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

/** The effect of groups on the runs of one type in one bucket. */
interface Total {
  readonly bucket: number
  readonly run_type: RunType
  readonly sum: Sum
}

/** Adds first, because a tally of an environment would be copied for each of thousands of functions. */
const addTo = (totals: Map<string, Total>, more: Total): void => {
  const key = `${more.bucket} ${more.run_type}`
  let total = totals.get(key)
  if (!total) totals.set(key, (total = { ...more, sum: emptySum() }))
  const { n, d } = total.sum
  for (const [at, count] of more.sum.n.entries()) n[at] = (n[at] ?? 0) + count
  for (const [bucket, count] of more.sum.d) d.set(bucket, (d.get(bucket) ?? 0) + count)
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
