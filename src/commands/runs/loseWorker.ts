import { clock } from '../../clock.ts'
import { isRetryable } from '../../errors.ts'
import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { runsOn } from '../../projections/runs.ts'
import type { CommandDeps } from '../deps.ts'

/** So many streams that do not answer, one after the other, are an outage of the event store: the others are not asked. */
const OUTAGE = 3

type Deps = Pick<CommandDeps, 'aggregates'> & {
  readonly views: { readonly runs: Pick<CommandDeps['views']['runs'], 'find'> }
}

interface LostWorker {
  /** The worker was marked lost now, or runs of it were ended. */
  readonly isChanged: boolean
  readonly runs_lost: number
}

/**
 * Ends the runs of a dead worker as lost through no fault of their own: each starts again as its next attempt, or fails
 * with `worker_lost` (I3). The worker is marked lost first: one that was only paused reads this, and claims nothing more under
 * its id (W5). After a crash, `formerWorkers` finds the runs that are left. A run whose stream has a defect or does not answer
 * does not keep the others: the first failure is thrown at the end. A run whose facts have expired cannot be ended: its document
 * is removed later.
 */
export const loseWorker = async (
  { aggregates, views }: Deps,
  { worker_id }: { readonly worker_id: string },
): Promise<LostWorker> => {
  const { events: marks } = await aggregates.workers.handle(
    streamOf.worker(worker_id),
    { type: 'LoseWorker', worker_id, now: clock.iso() },
    { correlation_id: worker_id, ...bySystem('recovery') },
  )
  let lost = 0
  const defects: unknown[] = []
  const unanswered: unknown[] = []
  let inARow = 0
  const left = { id: 'run_id', equal: {}, sort: 'running_on', ...runsOn(worker_id) } as const
  const error = { code: 'worker_lost', message: 'The worker died before the run ended' }
  for await (const { run_id, stream_id, env_id } of everyDoc(views.runs, left)) {
    const command = {
      type: 'LoseRun',
      run_id,
      worker_id,
      error,
      now: clock.iso(),
    } as const
    const cause = { env_id, correlation_id: run_id, causation_id: worker_id, ...bySystem('recovery') }
    try {
      const { events } = await aggregates.streams.handle(streamOf.stream(stream_id), command, cause)
      if (events.length > 0) lost++
      inARow = 0
    } catch (failure) {
      if (!isRetryable(failure)) defects.push(failure)
      else if (++inARow === OUTAGE) throw failure
      else unanswered.push(failure)
    }
  }
  if (unanswered.length > 0) throw unanswered[0]
  if (defects.length > 0) throw defects[0]
  return { isChanged: marks.length > 0 || lost > 0, runs_lost: lost }
}
