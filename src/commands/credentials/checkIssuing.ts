import type { Credential } from '../../access/credential.ts'
import { AppError } from '../../errors.ts'
import type { Permissions } from '../../events/org.ts'

/**
 * Checks that a credential may be issued (SPEC.md, Permission map). Throws, in this order: `forbidden` when the issuer
 * is not an API key, `bad_request` when `check` refuses the map, `permission_escalation` when it exceeds the issuer's.
 */
export const checkIssuing = (
  { kind, permissions: own }: Credential,
  permissions: Permissions,
  check: (map: Permissions) => void,
): void => {
  if (kind !== 'api-key')
    throw new AppError('forbidden', 'Only an API key can create sessions and service keys')
  check(permissions)
  const beyond = own.beyond(permissions)
  if (beyond === undefined) return
  throw new AppError(
    'permission_escalation',
    `permissions: ${JSON.stringify(beyond.slice(0, 100))} exceeds the permissions of the API key`,
  )
}
