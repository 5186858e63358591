import type { Credential } from '../../access/credential.ts'
import { clock, isoOf } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { heapBytesOf } from '../../loops/heapBytes.ts'
import type { Permissions } from '../../events/org.ts'

/** Memory of one credential's permissions and metadata. A list or a cache of credentials contains many of them. */
const MAX_HEAP = 128 << 10

/**
 * Checks that a credential may be issued (SPEC.md, Permission map). Throws, in this order: `forbidden` when the issuer
 * is not an API key, `bad_request` when `check` refuses the map, `permission_escalation` when it exceeds the issuer's.
 */
export const checkIssuing = (
  { kind, permissions: own }: Credential,
  { permissions, metadata }: { readonly permissions: Permissions; readonly metadata?: unknown },
  check: (map: Permissions) => void,
): void => {
  if (kind !== 'api-key')
    throw new AppError('forbidden', 'Only an API key can create sessions and service keys')
  check(permissions)
  checkMemory({ permissions, metadata })
  const beyond = own.beyond(permissions)
  if (beyond === undefined) return
  throw new AppError(
    'permission_escalation',
    `permissions: ${JSON.stringify(beyond.slice(0, 100))} exceeds the permissions of the API key`,
  )
}

/** Throws `bad_request` for permissions and metadata that need more memory than those of one credential may. */
export const checkMemory = ({
  permissions,
  metadata,
}: {
  readonly permissions: Permissions
  readonly metadata?: unknown
}): void => {
  const heap = { permissions: heapBytesOf(permissions), metadata: heapBytesOf(metadata) }
  if (heap.permissions + heap.metadata <= MAX_HEAP) return
  const name = heap.permissions > heap.metadata ? 'permissions' : 'metadata'
  throw new AppError('bad_request', `${name}: expected fewer lists, objects and fields`)
}

/** The time in `seconds` from now, ISO 8601. Throws `bad_request` unless it is a whole number from 1 to `longest`. */
export const expiryOf = (seconds: number, longest: number): string => {
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > longest)
    throw new AppError(
      'bad_request',
      `expires_in: expected a whole number of seconds from 1 to ${longest}, got ${seconds}`,
    )
  return isoOf(clock.now() + seconds * 1000)
}
