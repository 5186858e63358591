import type { Credential } from '../../access/credential.ts'
import { clock } from '../../clock.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Records the last use of a service key (SPEC.md, Service key); a no-op within a minute of the last record. */
export const useServiceKey = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { id, api_key_id, env_id }: Pick<Credential, 'id' | 'api_key_id' | 'env_id'>,
): Promise<void> => {
  await aggregates.issued.handle(
    streamOf.issued(api_key_id),
    { type: 'UseServiceKey', api_key_id, service_key_id: id, now: clock.iso() },
    { env_id, correlation_id: id, actor: id },
  )
}
