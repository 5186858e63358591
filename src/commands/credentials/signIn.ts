import type { Credential } from '../../access/credential.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { issueSession } from './issueSession.ts'

/** The lifetime of a session in the dashboard: a day of work. */
export const SIGNED_IN_S = 12 * 60 * 60

/** The metadata of a session that a sign-in created. Signing out revokes it, and no other session. */
const METADATA = { purpose: 'dashboard' } as const

export const isOfSignIn = (metadata: unknown): boolean =>
  typeof metadata === 'object' &&
  metadata !== null &&
  (metadata as Partial<typeof METADATA>).purpose === METADATA.purpose

/** Issues a session with the permissions of an API key. Resolves with its token. Rejects with `session_limit_exceeded`. */
export const signIn = async (
  deps: Pick<CommandDeps, 'aggregates' | 'keyring'>,
  issuer: Credential,
  caller: Caller,
): Promise<string> => {
  const [permissions = {}] = issuer.granted
  const wanted = { issuer, permissions, metadata: METADATA, expires_in: SIGNED_IN_S }
  return (await issueSession(deps, wanted, caller)).token
}
