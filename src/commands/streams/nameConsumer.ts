import { isoOf } from '../../clock.ts'
import { streamOf } from '../../events/streams.ts'
import { laterNow } from '../../loops/twoClocks.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { consumerGroup } from './consumerGroup.ts'

/**
 * Records the name of a consumer of the environment stream, and once a day that it is used, because the event store keeps
 * the position of each name. Resolves with its group. Rejects with `quota_exceeded` when the plan allows no further name.
 */
export const nameConsumer = async (
  { aggregates, quotas, store }: Pick<CommandDeps, 'aggregates' | 'quotas' | 'store'>,
  name: string,
  { cause }: Pick<Caller, 'cause'>,
): Promise<string> => {
  const { env_id } = cause
  const most = quotas.countsOf(env_id).consumers
  const command = { type: 'NameConsumer', name, most, now: isoOf(laterNow(store)) } as const
  await aggregates.envs.handle(streamOf.env(env_id), command, cause)
  return consumerGroup(env_id, name)
}
