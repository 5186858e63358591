import { isoOf } from '../../clock.ts'
import { bySystem } from '../../events/actor.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { runDayOf } from '../../projections/runDays.ts'
import type { CommandDeps } from '../deps.ts'

/** All facts of a day are in the log when it is over for this time, although clocks differ. */
const OVER_MS = 3600_000

interface Recording {
  readonly env_id: string
  /** The first day whose calls the plan keeps. */
  readonly keptFrom: string
  /** Milliseconds since 1970. */
  readonly now: number
}

export const retentionCauseOf = (env_id: string): EnvCause => ({
  env_id,
  correlation_id: env_id,
  ...bySystem('retention'),
})

/**
 * Records the numbers of the days of an environment that are over, so that neither usage nor statistics decrease when their
 * facts expire. The caller has settled `callDays` and `runs`.
 */
export const recordDays = async (
  {
    aggregates,
    views,
  }: Pick<CommandDeps, 'aggregates'> & {
    readonly views: Pick<CommandDeps['views'], 'callDays' | 'runStats'>
  },
  { env_id, keptFrom, now }: Recording,
): Promise<void> => {
  const stream = streamOf.calls(env_id)
  const cause = retentionCauseOf(env_id)
  const { counted, runsCounted } = await aggregates.calls.read(stream, (state) => ({ ...state }))
  const today = isoOf(now - OVER_MS).slice(0, 10)
  const days = { id: 'day', equal: { env_id }, sort: 'day', from: counted, before: today } as const
  for await (const { day, runs, bytes } of everyDoc(views.callDays, days))
    if (day > counted)
      await aggregates.calls.handle(stream, { type: 'CountDay', env_id, day, runs, bytes }, cause)
  const runDays = { ...days, from: runsCounted, before: keptFrom }
  for await (const { day } of everyDoc(views.callDays, runDays)) {
    const tallies = day > runsCounted ? await runDayOf(views.runStats, { env_id, day }) : null
    if (tallies) await aggregates.calls.handle(stream, { type: 'CountRuns', env_id, day, tallies }, cause)
  }
}
