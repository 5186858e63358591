import { placeOf } from '../../content/payloads.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Whether the payload of a key may have been removed: the log says that its day has expired, or that its environment was deleted,
 * before the payload is removed.
 */
export const hasExpired = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  key: string,
): Promise<boolean> => {
  const place = placeOf(key)
  if (!place) return false
  const { env_id, day } = place
  const [isDeleted, keptFrom] = await Promise.all([
    aggregates.envs.read(streamOf.env(env_id), ({ status }) => status === 'deleted'),
    aggregates.calls.read(streamOf.calls(env_id), ({ expired }) => expired),
  ])
  return isDeleted || day < keptFrom
}
