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
  /** Asked before each stream; false ends the work. */
  readonly isCurrent?: () => boolean
}

/** Keeps the streams of an environment that are in the read models, with the output of runs, for a time. Resolves with their number. */
export const retainStreams = async (
  {
    store,
    views,
  }: { readonly store: Pick<EventStore, 'expire'>; readonly views: Pick<Views, 'events' | 'runs'> },
  { seconds, isCurrent = () => true, ...which }: Retained,
): Promise<number> => {
  const done = new BoundedMap<string, true>(REMEMBERED)
  let retained = 0
  for await (const stream of streamsIn(views, which)) {
    if (!isCurrent()) break
    if (done.get(stream)) continue
    await store.expire(stream, seconds)
    done.set(stream, true)
    retained++
  }
  return retained
}

async function* streamsIn(
  views: Pick<Views, 'events' | 'runs'>,
  { env_id, before }: Pick<Retained, 'env_id' | 'before'>,
): AsyncGenerator<string> {
  const all = { equal: { env_id }, sort: 'order', ...(before !== undefined && { before }) } as const
  for await (const { stream_id } of everyDoc(views.events, { ...all, id: 'event_id' }))
    yield streamOf.stream(stream_id)
  for await (const { stream_id, run_id } of everyDoc(views.runs, { ...all, id: 'run_id' })) {
    yield streamOf.stream(stream_id)
    yield streamOf.runLog(run_id)
  }
}

type Deps = Pick<CommandDeps, 'aggregates' | 'store'> & {
  readonly views: Pick<Views, 'callDays' | 'directory' | 'events' | 'runs' | 'runStats' | 'settled'>
}

/**
 * Keeps the streams of an organization for the retention period of its current plan: those of all events and runs in the read
 * models, with their output. Before that, it records the numbers of their days: the facts of many expire at once if the
 * plan keeps less than the former one. `now`: milliseconds since 1970. Resolves with the number of streams.
 */
export const renewRetention = async (
  deps: Deps,
  { org_id, now }: { readonly org_id: string; readonly now: number },
): Promise<number> => {
  const { views } = deps
  await views.settled(...READ)
  let renewed = 0
  for (const env_id of views.directory.envsOf(org_id)) renewed += await renewEnv(deps, { env_id, now })
  return renewed
}

const READ = ['callDays', 'events', 'runs'] as const

/** Begins again when the plan has changed meanwhile: another node may have completed its pass for that plan before this one. */
const renewEnv = async (
  { aggregates, store, views }: Deps,
  { env_id, now }: { readonly env_id: string; readonly now: number },
): Promise<number> => {
  const planNow = () => views.directory.env(env_id)?.plan
  for (;;) {
    const plan = planNow()
    const seconds = retentionOf(plan)
    const isCurrent = () => planNow() === undefined || retentionOf(planNow()) === seconds
    if (plan && seconds !== null)
      await recordDays(
        { aggregates, views },
        { env_id, keptFrom: keptFromOf(termsOf[plan].limits, now), now },
      )
    const retained = await retainStreams({ store, views }, { env_id, seconds, isCurrent })
    await views.settled(...READ) // so that a change during the last write is seen
    if (isCurrent()) return retained
  }
}
