import { checkPermissions, FULL_ACCESS } from '../../access/permissions.ts'
import { newApiToken, parseApiToken } from '../../access/tokens.ts'
import type { Cause } from '../../events/event.ts'
import type { Permissions } from '../../events/org.ts'
import { streamOf } from '../../events/streams.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { checkMemory } from './checkIssuing.ts'
import { findEnv } from '../orgs/findTenant.ts'

/**
 * Creates an API key of an environment (DESIGN.md, Start and configure). Without permissions it has full access.
 * Resolves with its id and its token, which is not stored (I6). Rejects with `bad_request` or `not_found`.
 */
export const createApiKey = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'keyring'>,
  { name, permissions = FULL_ACCESS, ...input }: { env_id: string; name: string; permissions?: Permissions },
  { cause, newId }: Caller<Cause>,
): Promise<{ api_key_id: string; token: string }> => {
  checkPermissions(permissions)
  checkMemory({ permissions })
  const { env_id } = await findEnv(deps, input.env_id)
  const api_key_id = newId('api key')
  const token = newApiToken(api_key_id)
  const mac = deps.keyring.macOf(parseApiToken(token)?.secret ?? '')
  await deps.aggregates.apiKeys.handle(
    streamOf.key(api_key_id),
    { type: 'CreateApiKey', api_key_id, env_id, name, mac, permissions },
    { ...cause, env_id },
  )
  return { api_key_id, token }
}
