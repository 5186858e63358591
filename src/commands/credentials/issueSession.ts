import type { Credential } from '../../access/credential.ts'
import { checkPermissions } from '../../access/permissions.ts'
import { newIssuedToken } from '../../access/tokens.ts'
import { clock } from '../../clock.ts'
import type { Permissions } from '../../events/org.ts'
import { streamOf } from '../../events/streams.ts'
import { checkIssuing, expiryOf } from './checkIssuing.ts'
import type { Caller, CommandDeps } from '../deps.ts'

/** Default and maximum lifetime of a session, seconds (SPEC.md, Sessions). */
export const DEFAULT_SESSION_S = 3600
export const LONGEST_SESSION_S = 86_400

/**
 * Issues a session under an API key (SPEC.md, Sessions). Resolves with its id, its end and its token, which is not stored (I6).
 * Rejects with `forbidden`, `bad_request`, `permission_escalation` or `session_limit_exceeded`.
 */
export const issueSession = async (
  { aggregates, keyring }: Pick<CommandDeps, 'aggregates' | 'keyring'>,
  {
    issuer,
    permissions,
    metadata,
    expires_in = DEFAULT_SESSION_S,
  }: { issuer: Credential; permissions: Permissions; metadata?: unknown; expires_in?: number | undefined },
  { cause, newId }: Caller,
): Promise<{ session_id: string; token: string; expires_at: string }> => {
  checkIssuing(issuer, { permissions, metadata }, checkPermissions)
  const { api_key_id } = issuer
  const session_id = newId('session')
  const { token, secret } = newIssuedToken('session', session_id)
  const session = {
    session_id,
    mac: keyring.macOf(secret),
    permissions,
    ...(metadata !== undefined && { metadata }),
    expires_at: expiryOf(expires_in, LONGEST_SESSION_S),
  }
  await aggregates.issued.handle(
    streamOf.issued(api_key_id),
    { type: 'CreateSession', api_key_id, now: clock.iso(), session },
    cause,
  )
  return { session_id, token, expires_at: session.expires_at }
}
