import { isoOf } from '../../clock.ts'
import { payloadsOf, placeOf } from '../../content/payloads.ts'
import { bySystem } from '../../events/actor.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { runDayOf } from '../../projections/runDays.ts'
import { keptFromOf } from '../../plans/usage.ts'
import { retentionOf, termsOf, UNLIMITED } from '../../plans/plans.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import type { CommandDeps } from '../deps.ts'
import { expireReplies } from './expireReplies.ts'
import { retainStreams } from './renewRetention.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'blobs'> & {
  readonly store: Pick<EventStore, 'expire' | 'scavenge'>
  readonly views: Pick<
    CommandDeps['views'],
    'callDays' | 'directory' | 'envs' | 'events' | 'runs' | 'runStats' | 'settled'
  >
}

/** All facts of a day are in the log when it is over for this time, although clocks differ. */
const OVER_MS = 3600_000

/**
 * Forgets the runs and events that the plan of each organization keeps no longer: their documents and their large payloads.
 * Before that, it records the numbers of each day, so that neither usage nor statistics decrease. Large replies expire
 * under every plan. `now`: milliseconds since 1970. Resolves with the number of removed blobs.
 */
export const expireCalls = async (deps: Deps, { now }: { readonly now: number }): Promise<number> => {
  const { views } = deps
  await views.settled('callDays', 'envs', 'events', 'runs')
  let removed = 0
  for await (const { env_id, active } of views.envs.scan()) {
    const plan = views.directory.env(env_id)?.plan
    if (!active || plan === undefined) continue
    const { limits } = termsOf[plan]
    if (limits.call_retention_days === UNLIMITED) continue
    removed += await expireEnv(deps, {
      env_id,
      seconds: retentionOf(plan),
      keptFrom: keptFromOf(limits, now),
      today: dayOf(now - OVER_MS),
    })
  }
  return removed + (await expireReplies(deps, { now }))
}

const dayOf = (ms: number): string => isoOf(ms).slice(0, 10)

const expireEnv = async (
  { aggregates, blobs, store, views }: Deps,
  {
    env_id,
    seconds,
    keptFrom,
    today,
  }: { env_id: string; seconds: number | null; keptFrom: string; today: string },
): Promise<number> => {
  const stream = streamOf.calls(env_id)
  const cause: EnvCause = { env_id, correlation_id: env_id, ...bySystem('retention') }
  const { counted, expired, runsCounted } = await aggregates.calls.read(stream, (state) => ({ ...state }))
  const days = { id: 'day', equal: { env_id }, sort: 'day', from: counted, before: today } as const
  for await (const { day, runs, bytes } of everyDoc(views.callDays, days))
    if (day > counted)
      await aggregates.calls.handle(stream, { type: 'CountDay', env_id, day, runs, bytes }, cause)
  const runDays = { ...days, from: runsCounted, before: keptFrom }
  for await (const { day } of everyDoc(views.callDays, runDays)) {
    const tallies = day > runsCounted ? await runDayOf(views.runStats, { env_id, day }) : null
    if (tallies) await aggregates.calls.handle(stream, { type: 'CountRuns', env_id, day, tallies }, cause)
  }
  if (keptFrom > expired) {
    // A restored log knows the retention only of streams that it contains from the beginning.
    if (store.scavenge) await retainStreams({ store, views }, { env_id, seconds, before: keptFrom })
    await aggregates.calls.handle(stream, { type: 'ExpireCalls', env_id, before: keptFrom }, cause)
  }
  let removed = 0
  for await (const { key } of blobs.list(payloadsOf(env_id))) {
    const place = placeOf(key)
    if (!place || place.day >= keptFrom) continue
    await blobs.remove(key)
    removed++
  }
  return removed
}
