import type { Credential } from '../../access/credential.ts'
import { clock } from '../../clock.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Records the last use of a service key (SPEC.md, Service key); a no-op within a minute of the last record of the day. */
export const useServiceKey = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { id, api_key_id, env_id }: Pick<Credential, 'id' | 'api_key_id' | 'env_id'>,
): Promise<void> => {
  const now = clock.iso()
  await aggregates.keyUses.handle(
    streamOf.keyUse(id, now.slice(0, 10)),
    { type: 'UseServiceKey', api_key_id, service_key_id: id, now },
    { env_id, correlation_id: id, actor: id, actor_type: 'service-key' },
  )
}
