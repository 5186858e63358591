import type { EnvCause } from '../../events/event.ts'
import type { CommandDeps } from '../deps.ts'
import { revokeIssued } from './revokeIssued.ts'

/**
 * Revokes a session of an API key; its streams end on every node (SPEC.md, Sessions). Rejects with `not_found`.
 */
export const revokeSession = async (
  deps: Pick<CommandDeps, 'aggregates' | 'authenticator'>,
  { api_key_id, session_id }: { api_key_id: string; session_id: string },
  cause: EnvCause,
): Promise<void> => {
  await revokeIssued(deps, { type: 'RevokeSession', api_key_id, session_id }, cause)
}
