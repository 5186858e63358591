import { isoOf } from '../../clock.ts'
import { UNUSED_DAYS } from '../../domain/env.ts'
import { bySystem } from '../../events/actor.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { consumerGroup } from './consumerGroup.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'store'>

const DAY_MS = 86_400_000

/**
 * Forgets the names of consumers that were not used for 30 days, with their positions. `now`: milliseconds since 1970.
 * Resolves with their number.
 */
export const forgetConsumers = async (
  { aggregates, store, views }: Deps & { readonly views: Pick<CommandDeps['views'], 'envs'> },
  { now }: { readonly now: number },
): Promise<number> => {
  let forgotten = 0
  const unusedSince = isoOf(now - UNUSED_DAYS * DAY_MS)
  for await (const { env_id, active } of views.envs.scan()) {
    if (!active) continue
    const stream = streamOf.env(env_id)
    const cause = { env_id, correlation_id: env_id, ...bySystem('consumers') }
    const old = await aggregates.envs.read(stream, ({ consumers, used }) =>
      [...consumers]
        .map((name) => [name, used.get(name)] as const)
        .filter(([, used_at]) => used_at === undefined || used_at < unusedSince),
    )
    for (const [name, used_at] of old) {
      // The group first: if this node dies in between, the next sweep finds the name again.
      if (used_at !== undefined) await store.dropGroup(consumerGroup(env_id, name))
      const command = { type: 'ForgetConsumer', name, unusedSince, now: isoOf(now) } as const
      const { events } = await aggregates.envs.handle(stream, command, cause)
      if (events.some(({ type }) => type === 'ConsumerForgotten')) forgotten++
    }
  }
  return forgotten
}

/** Forgets the positions of all consumers of a deleted environment. */
export const dropConsumers = async ({ aggregates, store }: Deps, { env_id }: EnvCause): Promise<void> => {
  const names = await aggregates.envs.read(streamOf.env(env_id), ({ consumers }) => [...consumers])
  for (const name of names) await store.dropGroup(consumerGroup(env_id, name))
}
