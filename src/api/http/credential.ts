import type { PermissionSet } from '../../access/permissions.ts'
import type { CredentialKind } from '../../access/tokens.ts'

/** The caller of a request: a valid credential of one environment. */
export interface Credential {
  readonly kind: CredentialKind
  readonly id: string
  readonly env_id: string
  /** Its own id for an API key; the key under which any other credential was issued. */
  readonly api_key_id: string
  readonly permissions: PermissionSet
  /** Milliseconds since 1970; Infinity means never. */
  readonly expires: number
  /** The sealed metadata of a service key. */
  readonly metadata?: string
}
