import { clock } from '../../clock.ts'
import { openingOf } from '../../domain/stream.ts'
import { envIdOf, type Recorded } from '../../events/event.ts'
import type { EventOf } from '../../events/index.ts'
import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Claims a requested run for a worker (I3). Resolves with null when a worker has already claimed it. */
export const claimRun = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { requested, worker_id }: { requested: Recorded<EventOf<'RunRequested'>>; worker_id: string },
): Promise<RunPlan | null> => {
  const { event, metadata, revision } = requested
  const { type: _, input: __, returned_by: ___, ...plan } = event
  const { stream_id, run_id } = plan
  const { events } = await aggregates.streams.handle(
    streamOf.stream(stream_id),
    { type: 'ClaimRun', run_id, worker_id, now: clock.iso() },
    { ...metadata, env_id: envIdOf(requested), causation_id: run_id },
    { opening: openingOf(requested), known: revision },
  )
  return events.length > 0 ? { ...plan, input_at: plan.input_at ?? { stream_id, revision } } : null
}
