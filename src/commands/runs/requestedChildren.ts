import { isOf, type Recorded } from '../../events/event.ts'
import type { EventOf } from '../../events/index.ts'
import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Reads the requests of the child runs of a run that no worker has claimed. */
export const requestedChildren = async (
  { store, aggregates }: Pick<CommandDeps, 'store' | 'aggregates'>,
  { run_id, stream_id }: Pick<RunPlan, 'run_id' | 'stream_id'>,
): Promise<readonly Recorded<EventOf<'RunRequested'>>[]> => {
  const stream = streamOf.stream(stream_id)
  const revisions = await aggregates.streams.read(stream, ({ runs }) =>
    [...runs.values()].flatMap((run) =>
      run.status === 'requested' && run.plan.parent_run_id === run_id ? [run.requestedRevision] : [],
    ),
  )
  const requests: Recorded<EventOf<'RunRequested'>>[] = []
  for (const from of revisions)
    for await (const recorded of store.read(stream, { from, limit: 1 }))
      if (isOf(recorded, 'RunRequested')) requests.push(recorded)
  return requests
}
