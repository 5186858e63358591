import type { Credential } from '../../src/access/credential.ts'
import { compilePermissions, FULL_ACCESS } from '../../src/access/permissions.ts'
import type { Permissions } from '../../src/events/org.ts'
import { newId } from '../../src/ids.ts'

/** An API key that issues sessions and service keys. */
export const issuerOf = (
  env_id: string,
  id: string = newId(),
  permissions: Permissions = FULL_ACCESS,
): Credential => ({
  kind: 'api-key',
  id,
  env_id,
  api_key_id: id,
  permissions: compilePermissions(permissions),
  granted: [permissions],
  expires: Infinity,
})
