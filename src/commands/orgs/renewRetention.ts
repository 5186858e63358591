import { BoundedMap } from '../../boundedMap.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { retentionOf } from '../../plans/plans.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * The consumer group that sets the retention of each new stream. Its position is in no backup, because the retentions are
 * not either: after a restore, the group sets all of them again.
 */
export const RETENTION_GROUP = 'retentions'

/** Streams that are not set a second time: the runs of a stream are usually close together. */
const REMEMBERED = 10_000

/**
 * Keeps the streams of an organization for the retention period of its current plan: those of all events and runs in the read
 * models, with their output. Resolves with their number.
 */
export const renewRetention = async (
  {
    store,
    views,
  }: Pick<CommandDeps, 'store'> & {
    readonly views: Pick<CommandDeps['views'], 'directory' | 'events' | 'runs' | 'settled'>
  },
  { org_id }: { readonly org_id: string },
): Promise<number> => {
  const { directory } = views
  await views.settled('events', 'runs')
  const done = new BoundedMap<string, true>(REMEMBERED)
  let renewed = 0
  const renew = async (stream: string, seconds: number | null): Promise<void> => {
    if (done.get(stream)) return
    await store.expire(stream, seconds)
    done.set(stream, true)
    renewed++
  }
  for (const env_id of directory.envsOf(org_id)) {
    const seconds = retentionOf(directory.env(env_id)?.plan)
    for await (const { stream_id } of everyDoc(views.events, {
      id: 'event_id',
      equal: { env_id },
      sort: 'order',
    }))
      await renew(streamOf.stream(stream_id), seconds)
    for await (const { stream_id, run_id } of everyDoc(views.runs, {
      id: 'run_id',
      equal: { env_id },
      sort: 'order',
    })) {
      await renew(streamOf.stream(stream_id), seconds)
      await renew(streamOf.runLog(run_id), seconds)
    }
  }
  return renewed
}
