import type { Recorded } from '../../events/event.ts'
import type { EventOf } from '../../events/index.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Abandons an event that cannot be dispatched because of a defect. It starts no runs, and its stream records the reason
 * (I3). A no-op for an event that was dispatched meanwhile.
 */
export const abandonEvent = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { published: { event, metadata, revision } }: { published: Recorded<EventOf<'EventPublished'>> },
): Promise<void> => {
  const { event_id, stream_id } = event
  const error = {
    code: 'internal_server_error',
    message: `Event ${event_id} could not be dispatched because of a defect in the service; its log contains the reason`,
  }
  await aggregates.streams.handle(
    streamOf.stream(stream_id),
    { type: 'AbandonEvent', stream_id, event_id, error },
    { ...metadata, causation_id: event_id },
    { known: revision },
  )
}
