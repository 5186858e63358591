import { AppError } from '../errors.ts'
import type { Permissions } from '../events/org.ts'
import type { PermissionSet } from './permissions.ts'
import type { CredentialKind } from './tokens.ts'

/** A valid credential of one environment. */
export interface Credential {
  readonly kind: CredentialKind
  readonly id: string
  readonly env_id: string
  /** The API key itself, or the API key that issued the credential. */
  readonly api_key_id: string
  readonly permissions: PermissionSet
  /** The permission maps behind `permissions`: each of them must allow an action. */
  readonly granted: readonly Permissions[]
  /** Milliseconds since 1970; Infinity if it never expires. */
  readonly expires: number
  /** Sealed metadata of a service key; absent when it has none. */
  readonly metadata?: string
}

/** The same error for every fault of a credential, so that it reveals nothing. */
export const unauthorized = (): AppError =>
  new AppError('unauthorized', 'Expected a valid credential in `Authorization: Bearer <token>`')
