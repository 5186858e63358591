import { clock } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Revokes every active session of an API key (SPEC.md, Sessions) and ends their streams. Resolves with the count. */
export const revokeSessions = async (
  { aggregates, authenticator }: Pick<CommandDeps, 'aggregates' | 'authenticator'>,
  { api_key_id }: { api_key_id: string },
  cause: EnvCause,
): Promise<number> => {
  const { events } = await aggregates.issued.handle(
    streamOf.issued(api_key_id),
    { type: 'RevokeSessions', api_key_id, now: clock.iso() },
    cause,
  )
  authenticator.ended(api_key_id)
  return events.reduce(
    (sum, event) => sum + (event.type === 'SessionsEnded' ? event.session_ids.length : 0),
    0,
  )
}
