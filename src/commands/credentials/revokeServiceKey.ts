import { clock } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Revokes a service key of an API key; its streams end on every node (SPEC.md, Service keys). Rejects with `not_found`.
 */
export const revokeServiceKey = async (
  { aggregates, authenticator }: Pick<CommandDeps, 'aggregates' | 'authenticator'>,
  { api_key_id, service_key_id }: { api_key_id: string; service_key_id: string },
  cause: EnvCause,
): Promise<void> => {
  await aggregates.issued.handle(
    streamOf.issued(api_key_id),
    { type: 'RevokeServiceKey', api_key_id, service_key_id, now: clock.iso() },
    cause,
  )
  authenticator.ended(api_key_id, service_key_id)
}
