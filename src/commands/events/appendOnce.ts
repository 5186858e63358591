import type { Handled } from '../../domain/commandHandler.ts'
import { PossiblyPublished, type StreamCommand, type StreamEvent } from '../../domain/stream.ts'
import type { EnvCause } from '../../events/event.ts'
import type { CommandDeps } from '../deps.ts'

type Publish = Extract<StreamCommand, { type: 'PublishEvent' }>

/**
 * Appends an event that is published under an `Idempotency-Key`, once (I3). Resolves with null if an earlier attempt of
 * the request, here or on another node, has appended it.
 */
export const appendOnce = async (
  { aggregates, views }: Pick<CommandDeps, 'aggregates' | 'views'>,
  stream: string,
  publish: Publish,
  cause: EnvCause,
): Promise<Handled<StreamEvent> | null> => {
  for (let command = publish; ;) {
    try {
      const handled = await aggregates.streams.handle(stream, command, cause)
      return handled.events.length > 0 ? handled : null
    } catch (error) {
      if (!(error instanceof PossiblyPublished)) throw error
      await views.settled('events') // it contains every fact up to the revision, because that was read before
      if (await views.events.get(publish.event_id)) return null
      command = { ...publish, absent_to: error.revision }
    }
  }
}
