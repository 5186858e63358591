import type { EnvCause } from '../../events/event.ts'
import type { CommandDeps } from '../deps.ts'
import { revokeIssued } from './revokeIssued.ts'

/**
 * Revokes a service key of an API key; its streams end on every node (SPEC.md, Service keys). Rejects with `not_found`.
 */
export const revokeServiceKey = async (
  deps: Pick<CommandDeps, 'aggregates' | 'authenticator'>,
  { api_key_id, service_key_id }: { api_key_id: string; service_key_id: string },
  cause: EnvCause,
): Promise<void> => {
  await revokeIssued(deps, { type: 'RevokeServiceKey', api_key_id, service_key_id }, cause)
}
