import { clock } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Revokes an active session of an API key; its streams end on every node (SPEC.md, Sessions). Rejects with `not_found`.
 */
export const revokeSession = async (
  { aggregates, authenticator }: Pick<CommandDeps, 'aggregates' | 'authenticator'>,
  { api_key_id, session_id }: { api_key_id: string; session_id: string },
  cause: EnvCause,
): Promise<void> => {
  await aggregates.issued.handle(
    streamOf.issued(api_key_id),
    { type: 'RevokeSession', api_key_id, session_id, now: clock.iso() },
    cause,
  )
  authenticator.ended(api_key_id, session_id)
}
