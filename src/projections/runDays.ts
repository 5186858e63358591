import type { EventOf } from '../events/index.ts'
import type { Collection } from '../ports/readModels.ts'
import { bucketAt, periodAt } from './runBuckets.ts'
import { OTHER_CLASS, type RunStatsDoc, runStatsId } from './runStats.ts'

type Tallies = RunStatsDoc['tallies'][string]

/** The runs of one environment that started on one day, as they were recorded before their facts could expire. */
export type RunDayDoc = {
  readonly summary_id: string
  readonly summary_of: string
  readonly summary_key: string
  readonly tallies: EventOf<'RunDayCounted'>['tallies']
}

interface Day {
  readonly env_id: string
  /** `2026-05-01` */
  readonly day: string
}

/** The id of the document with the recorded numbers of a day. */
export const runDayId = ({ env_id, day }: Day): string => `stats/counted/${day}/${env_id}`

export const runDayDoc = ({ env_id, day, tallies }: EventOf<'RunDayCounted'>): RunDayDoc => ({
  summary_id: runDayId({ env_id, day }),
  summary_of: env_id,
  summary_key: `${OTHER_CLASS}/${day}`,
  tallies,
})

/** Returns the numbers of a day; null if no run started on it. */
export const runDayOf = async (
  runStats: Pick<Collection<RunStatsDoc>, 'get'>,
  { env_id, day }: Day,
): Promise<EventOf<'RunDayCounted'>['tallies'] | null> => {
  const ms = Date.parse(day)
  const period = periodAt('day', ms)
  const doc = await runStats.get(runStatsId({ env_id }, period))
  const types = doc?.period === period.number ? doc.tallies[bucketAt(period, ms)] : undefined
  if (!types) return null
  return Object.fromEntries(
    Object.entries(types).map(([type, { n, d }]) => [type, { n: [...n], d: { ...d } }]),
  )
}

/** Returns the numbers of a day: the recorded ones if they are higher, because facts of the day have expired since. */
export const fullerOf = (folded: Tallies | undefined, recorded: RunDayDoc | undefined): Tallies => {
  if (!recorded || totalOf(Object.values(recorded.tallies)) <= totalOf(Object.values(folded ?? {})))
    return folded ?? {}
  return recorded.tallies
}

const totalOf = (tallies: readonly { readonly n: readonly number[] }[]): number =>
  tallies.reduce((sum, { n }) => sum + n.reduce((a, b) => a + b, 0), 0)
