import { payloadsOf, placeOf } from '../../content/payloads.ts'
import { streamOf } from '../../events/streams.ts'
import { keptFromOf } from '../../plans/usage.ts'
import { retentionOf, termsOf, UNLIMITED } from '../../plans/plans.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import type { CommandDeps } from '../deps.ts'
import { expireReplies } from './expireReplies.ts'
import { recordDays, retentionCauseOf } from './recordDays.ts'
import { dayAfterAll, type RemovalViews, removeCalls } from './removeCalls.ts'
import { retainStreams } from './renewRetention.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'blobs'> & {
  readonly store: Pick<EventStore, 'expire' | 'scavenge'>
  readonly views: RemovalViews &
    Pick<CommandDeps['views'], 'callDays' | 'directory' | 'envs' | 'orgs' | 'runStats' | 'settled'>
}

/**
 * Forgets the runs and events that the plan of each organization keeps no longer: their documents and their large payloads.
 * Before that, it records the numbers of each day, so that neither usage nor statistics decrease; those of deleted
 * environments too. Large replies expire under every plan. `now`: milliseconds since 1970. `recorded`: the deleted environments of
 * which earlier sweeps have recorded all days. Resolves with the number of removed blobs.
 */
export const expireCalls = async (
  deps: Deps,
  { now, recorded = new Set() }: { readonly now: number; readonly recorded?: Set<string> },
): Promise<number> => {
  const { views } = deps
  await views.settled('callDays', 'envs', 'events', 'orgs', 'runs')
  let removed = 0
  for await (const { env_id, org_id, active, deleting } of views.envs.scan()) {
    if (recorded.has(env_id)) continue
    if (!active && deleting === null) await removeLeft(deps, { env_id, now })
    const plan = active ? views.directory.env(env_id)?.plan : (await views.orgs.get(org_id))?.plan
    if (plan === undefined) continue
    const { limits } = termsOf[plan]
    if (limits.call_retention_days === UNLIMITED) continue
    const keptFrom = keptFromOf(limits, now)
    if (active) removed += await expireEnv(deps, { env_id, seconds: retentionOf(plan), keptFrom, now })
    else {
      await recordDays(deps, { env_id, keptFrom, now }) // its runs count as usage of their month
      if (deleting === null && !(await hasDays(deps, { env_id, keptFrom }))) recorded.add(env_id)
    }
  }
  return removed + (await expireReplies(deps, { now }))
}

/** Removes what runs of a deleted environment did from the audit: they may have ended after the removal of its content. */
const removeLeft = async (
  { aggregates, views }: Deps,
  { env_id, now }: { readonly env_id: string; readonly now: number },
): Promise<void> => {
  const left = { equal: { env_id }, sort: 'expiring', from: '', limit: 1, offset: 0, totals: false } as const
  if ((await views.audit.find(left)).items.length > 0)
    await removeCalls({ aggregates, views }, { env_id, before: dayAfterAll(now) }, retentionCauseOf(env_id))
}

/** Whether the environment has days that the plan keeps, whose runs are recorded later. */
const hasDays = async (
  { views }: Pick<Deps, 'views'>,
  { env_id, keptFrom }: { readonly env_id: string; readonly keptFrom: string },
): Promise<boolean> => {
  const kept = { equal: { env_id }, sort: 'day', from: keptFrom, limit: 1, offset: 0, totals: false } as const
  return (await views.callDays.find(kept)).items.length > 0
}

const expireEnv = async (
  { aggregates, blobs, store, views }: Deps,
  {
    env_id,
    seconds,
    keptFrom,
    now,
  }: { env_id: string; seconds: number | null; keptFrom: string; now: number },
): Promise<number> => {
  await recordDays({ aggregates, views }, { env_id, keptFrom, now })
  const { expired, removedUpTo } = await aggregates.calls.read(streamOf.calls(env_id), (state) => ({
    ...state,
  }))
  if (keptFrom > expired || removedUpTo !== null) {
    // A restored log knows the retention only of streams that it contains from the beginning.
    if (store.scavenge) await retainStreams({ store, views }, { env_id, seconds, before: keptFrom })
    const before = keptFrom > expired ? keptFrom : expired
    await removeCalls({ aggregates, views }, { env_id, before }, retentionCauseOf(env_id))
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
