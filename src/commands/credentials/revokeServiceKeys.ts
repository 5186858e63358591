import type { EnvCause } from '../../events/event.ts'
import type { CommandDeps } from '../deps.ts'
import { revokeIssued } from './revokeIssued.ts'

/**
 * Revokes every service key of an API key (SPEC.md, Service keys) and ends their streams. Resolves with the
 * count.
 */
export const revokeServiceKeys = (
  deps: Pick<CommandDeps, 'aggregates' | 'authenticator'>,
  { api_key_id }: { api_key_id: string },
  cause: EnvCause,
): Promise<number> => revokeIssued(deps, { type: 'RevokeServiceKeys', api_key_id }, cause)
