import { streamOf } from '../../events/streams.ts'
import type { Caller, CommandDeps } from '../deps.ts'

/**
 * Records the name of a consumer of the environment stream, once, because the event store keeps the position of each name.
 * Rejects with `quota_exceeded` when the plan allows no further name.
 */
export const nameConsumer = async (
  { aggregates, quotas }: Pick<CommandDeps, 'aggregates' | 'quotas'>,
  name: string,
  { cause }: Pick<Caller, 'cause'>,
): Promise<void> => {
  const most = quotas.countsOf(cause.env_id).consumers
  await aggregates.envs.handle(streamOf.env(cause.env_id), { type: 'NameConsumer', name, most }, cause)
}
