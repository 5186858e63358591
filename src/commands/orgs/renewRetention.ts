import { BoundedMap } from '../../boundedMap.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { retentionOf, termsOf } from '../../plans/plans.ts'
import { keptFromOf } from '../../plans/usage.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import type { CommandDeps } from '../deps.ts'
import { recordDays } from './recordDays.ts'

type Views = CommandDeps['views']

/**
 * The consumer group that sets the retention of each new stream. Its position is in no backup, because the retentions are
 * not either: after a restore, the group sets all of them again. The name is new when the retention of a plan changes, so that
 * existing streams get it too.
 */
export const RETENTION_GROUP = 'retentions-2'

/** Streams that are not set a second time: the runs of a stream are usually close together. */
const REMEMBERED = 10_000

interface Retained {
  readonly env_id: string
  /** Null: for ever. */
  readonly seconds: number | null
  /** Only the streams of events and runs that began before this day. */
  readonly before?: string
}

/** Keeps the streams of an environment that are in the read models, with the output of runs, for a time. Resolves with their number. */
export const retainStreams = async (
  {
    store,
    views,
  }: { readonly store: Pick<EventStore, 'expire'>; readonly views: Pick<Views, 'events' | 'runs'> },
  { env_id, seconds, before }: Retained,
): Promise<number> => {
  const done = new BoundedMap<string, true>(REMEMBERED)
  let retained = 0
  const retain = async (stream: string): Promise<void> => {
    if (done.get(stream)) return
    await store.expire(stream, seconds)
    done.set(stream, true)
    retained++
  }
  const all = { equal: { env_id }, sort: 'order', ...(before !== undefined && { before }) } as const
  for await (const { stream_id } of everyDoc(views.events, { ...all, id: 'event_id' }))
    await retain(streamOf.stream(stream_id))
  for await (const { stream_id, run_id } of everyDoc(views.runs, { ...all, id: 'run_id' })) {
    await retain(streamOf.stream(stream_id))
    await retain(streamOf.runLog(run_id))
  }
  return retained
}

/**
 * Keeps the streams of an organization for the retention period of its current plan: those of all events and runs in the read
 * models, with their output. Before that, it records the numbers of their days: the facts of many expire at once if the
 * plan keeps less than the former one. `now`: milliseconds since 1970. Resolves with the number of streams.
 */
export const renewRetention = async (
  {
    aggregates,
    store,
    views,
  }: Pick<CommandDeps, 'aggregates' | 'store'> & {
    readonly views: Pick<Views, 'callDays' | 'directory' | 'events' | 'runs' | 'runStats' | 'settled'>
  },
  { org_id, now }: { readonly org_id: string; readonly now: number },
): Promise<number> => {
  const { directory } = views
  await views.settled('callDays', 'events', 'runs')
  let renewed = 0
  for (const env_id of directory.envsOf(org_id)) {
    const plan = directory.env(env_id)?.plan
    const seconds = retentionOf(plan)
    if (plan && seconds !== null)
      await recordDays(
        { aggregates, views },
        { env_id, keptFrom: keptFromOf(termsOf[plan].limits, now), now },
      )
    renewed += await retainStreams({ store, views }, { env_id, seconds })
  }
  return renewed
}
