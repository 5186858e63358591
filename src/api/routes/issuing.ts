import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { Permissions } from '../../events/org.ts'
import type { Credential } from '../http/credential.ts'
import type { Ask } from '../route.ts'

/** Permissions and metadata stand in one fact of the log. */
export const MAX_ISSUE_BYTES = 64 << 10

/**
 * Refuses what SPEC.md forbids of issuing, in this order: who asks is no API key (`forbidden`), the map is not valid
 * (`bad_request`), it grants what the API key has not (`permission_escalation`).
 */
export const mayIssue = (
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

/** What the facts of a request carry. */
export const causeOf = ({ credential, request_id }: Pick<Ask, 'credential' | 'request_id'>) => ({
  env_id: credential.env_id,
  correlation_id: request_id,
  actor: credential.id,
})

export const isoAt = (ms: number): string => new Date(ms).toISOString()

/** When what lives for this many seconds from now on expires. */
export const expiryOf = (seconds: number): string => isoAt(clock.now() + seconds * 1000)
