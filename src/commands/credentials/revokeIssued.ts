import { clock } from '../../clock.ts'
import type { IssuedCommand } from '../../domain/issued.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

type Untimed<C> = C extends unknown ? Omit<C, 'now'> : never

type Revocation = Untimed<
  Extract<
    IssuedCommand,
    { type: 'RevokeSession' | 'RevokeSessions' | 'RevokeServiceKey' | 'RevokeServiceKeys' }
  >
>

/** Revokes credentials that an API key issued, and ends their streams on every node. Resolves with the count. */
export const revokeIssued = async (
  { aggregates, authenticator }: Pick<CommandDeps, 'aggregates' | 'authenticator'>,
  revocation: Revocation,
  cause: EnvCause,
): Promise<number> => {
  const { api_key_id } = revocation
  const { events } = await aggregates.issued.handle(
    streamOf.issued(api_key_id),
    { ...revocation, now: clock.iso() },
    cause,
  )
  authenticator.ended(api_key_id, idOf(revocation))
  return events.flatMap((event) => {
    if (event.type === 'SessionsEnded') return event.session_ids
    return event.type === 'ServiceKeysRevoked' ? event.service_key_ids : []
  }).length
}

/** The credential to revoke; undefined: all of their kind. */
const idOf = (revocation: Revocation): string | undefined => {
  if (revocation.type === 'RevokeSession') return revocation.session_id
  return revocation.type === 'RevokeServiceKey' ? revocation.service_key_id : undefined
}
