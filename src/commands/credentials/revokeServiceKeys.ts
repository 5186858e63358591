import { clock } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Revokes every active service key of an API key (SPEC.md, Service keys) and ends their streams. Resolves with the
 * count.
 */
export const revokeServiceKeys = async (
  { aggregates, authenticator }: Pick<CommandDeps, 'aggregates' | 'authenticator'>,
  { api_key_id }: { api_key_id: string },
  cause: EnvCause,
): Promise<number> => {
  const { events } = await aggregates.issued.handle(
    streamOf.issued(api_key_id),
    { type: 'RevokeServiceKeys', api_key_id, now: clock.iso() },
    cause,
  )
  authenticator.ended(api_key_id)
  return events.reduce(
    (sum, event) => sum + (event.type === 'ServiceKeysRevoked' ? event.service_key_ids.length : 0),
    0,
  )
}
