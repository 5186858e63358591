import { clock, isoOf } from '../../clock.ts'
import { checkPermissions } from '../../access/permissions.ts'
import type { Cause } from '../../events/event.ts'
import type { Permissions } from '../../events/org.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { checkMemory } from './checkIssuing.ts'
import { findApiKey } from '../orgs/findTenant.ts'

/**
 * Changes an API key (DESIGN.md, Start and configure). The change applies from the next request on every node, also to
 * the sessions and service keys of the key. `expires_in`: seconds from now; null: it does not expire. Rejects with
 * `bad_request` or `not_found`.
 */
export const changeApiKey = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'authenticator'>,
  {
    api_key_id,
    enabled,
    name,
    permissions,
    expires_in,
  }: {
    api_key_id: string
    enabled?: boolean
    name?: string
    permissions?: Permissions
    expires_in?: number | null
  },
  cause: Cause,
): Promise<void> => {
  if (permissions) {
    checkPermissions(permissions)
    checkMemory({ permissions })
  }
  const changes = {
    ...(enabled !== undefined && { enabled }),
    ...(name !== undefined && { name }),
    ...(permissions && { permissions }),
    ...(expires_in !== undefined && {
      expires_at: expires_in === null ? null : isoOf(clock.now() + expires_in * 1000),
    }),
  }
  const { env_id } = await findApiKey(deps, api_key_id)
  await deps.aggregates.apiKeys.handle(
    streamOf.key(api_key_id),
    { type: 'ChangeApiKey', api_key_id, changes },
    { ...cause, env_id },
  )
  deps.authenticator.ended(api_key_id)
}
