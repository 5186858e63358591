import type { Credential } from '../../access/credential.ts'
import { isAppError } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import type { CommandDeps } from '../deps.ts'
import { revokeSession } from './revokeSession.ts'
import { isOfSignIn } from './signIn.ts'

/** Revokes a session that a sign-in created; any other session has another owner and remains valid. */
export const signOut = async (
  deps: Pick<CommandDeps, 'aggregates' | 'authenticator' | 'views'>,
  { id: session_id, api_key_id }: Pick<Credential, 'id' | 'api_key_id'>,
  cause: EnvCause,
): Promise<void> => {
  await deps.views.settled('sessions')
  if (!isOfSignIn((await deps.views.sessions.get(session_id))?.metadata)) return
  await revokeSession(deps, { api_key_id, session_id }, cause).catch((error: unknown) => {
    if (!isAppError(error, 'not_found')) throw error // another request has revoked it
  })
}
