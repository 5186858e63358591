import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { findApiKey } from '../orgs/findTenant.ts'
import { revokeServiceKeys } from './revokeServiceKeys.ts'
import { revokeSessions } from './revokeSessions.ts'

/**
 * Deletes an API key (DESIGN.md, Start and configure), then revokes its sessions and service keys. They are invalid
 * without the key (A3), even if the node dies before the revocations. Rejects with `not_found`.
 */
export const deleteApiKey = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'authenticator'>,
  { api_key_id }: { api_key_id: string },
  cause: Cause,
): Promise<void> => {
  const { env_id } = await findApiKey(deps, api_key_id)
  const inEnv = { ...cause, env_id }
  await deps.aggregates.apiKeys.handle(streamOf.key(api_key_id), { type: 'DeleteApiKey', api_key_id }, inEnv)
  deps.authenticator.ended(api_key_id)
  await revokeSessions(deps, { api_key_id }, inEnv)
  await revokeServiceKeys(deps, { api_key_id }, inEnv)
}
