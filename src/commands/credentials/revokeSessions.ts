import type { EnvCause } from '../../events/event.ts'
import type { CommandDeps } from '../deps.ts'
import { revokeIssued } from './revokeIssued.ts'

/** Revokes every session of an API key (SPEC.md, Sessions) and ends their streams. Resolves with the count. */
export const revokeSessions = (
  deps: Pick<CommandDeps, 'aggregates' | 'authenticator'>,
  { api_key_id }: { api_key_id: string },
  cause: EnvCause,
): Promise<number> => revokeIssued(deps, { type: 'RevokeSessions', api_key_id }, cause)
