import { clock } from '../../clock.ts'
import type { Recorded } from '../../events/event.ts'
import type { EventOf } from '../../events/index.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Fails a requested run that cannot be claimed because of a defect (I3). A no-op for a claimed run. */
export const abandonRun = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { requested: { event, metadata, revision } }: { requested: Recorded<EventOf<'RunRequested'>> },
): Promise<void> => {
  const { run_id, stream_id } = event
  const error = {
    code: 'internal_server_error',
    message: `Run ${run_id} could not be started because of a defect in the service; its log contains the reason`,
  }
  await aggregates.streams.handle(
    streamOf.stream(stream_id),
    { type: 'AbandonRun', run_id, was: 'requested', error, now: clock.iso() },
    { ...metadata, causation_id: run_id },
    { known: revision },
  )
}
