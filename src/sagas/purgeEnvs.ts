import { LAST_MS, type PurgeDeps, purgeEnv } from '../commands/orgs/purgeEnv.ts'
import { everyDoc } from '../loops/everyDoc.ts'
import type { Logger } from '../logger.ts'
import type { Views } from '../projections/views.ts'
import type { Saga, SagaCore } from './saga.ts'

const RETRY_MS = 60_000

/** A deleted environment. `at`: its deletion, milliseconds since 1970. */
interface Deleted {
  readonly env_id: string
  readonly at: number
}

interface Purge extends Deleted {
  readonly final: boolean
}

export type PurgeInput =
  | ({ readonly type: 'deleted' } & Deleted)
  | ({ readonly type: 'purged' } & Purge)
  | ({ readonly type: 'failed' } & Deleted)

/** Removes the content of a deleted environment at once, and again when nothing can be in progress in it any more. */
export const purgeEnvsCore: SagaCore<null, PurgeInput, Purge> = {
  initial: null,
  react(state, input, now) {
    const { env_id } = input
    const at = Math.min(input.at, now) // a clock that was ahead stores a later time
    const again = (time: number) =>
      [{ do: 'setAlarm', key: env_id, at: time, input: { type: 'deleted', env_id, at } }] as const
    switch (input.type) {
      case 'deleted': {
        const final = now >= at + LAST_MS
        return { state, steps: [{ do: 'carryOut', key: env_id, command: { env_id, at, final } }] }
      }
      case 'purged':
        return { state, steps: input.final ? [] : again(at + LAST_MS) }
      case 'failed':
        return { state, steps: again(now + RETRY_MS) }
      default:
        return input satisfies never
    }
  },
}

/**
 * Removes the content of deleted environments. Several nodes may do it, because each step is idempotent.
 */
export const purgeEnvs = (
  deps: PurgeDeps & {
    readonly views: Pick<Views, 'completeTo'>
    readonly logger: Logger
  },
): Saga<null, PurgeInput, Purge> => ({
  name: 'purgeEnvs',
  ...purgeEnvsCore,

  async *inputs(signal) {
    const { views, store } = deps
    const from = await views.completeTo('envs', signal)
    if (signal.aborted) return
    const left = { id: 'env_id', equal: {}, sort: 'deleting', from: '' } as const
    for await (const { env_id, deleting } of everyDoc(views.envs, left))
      yield { type: 'deleted', env_id, at: Date.parse(deleting?.split('/')[0] ?? '') || 0 }
    for await (const { events } of store.subscribe({ after: from, types: ['EnvDeleted'], signal }))
      for (const { event, at } of events)
        if (event.type === 'EnvDeleted') yield { type: 'deleted', env_id: event.env_id, at: Date.parse(at) }
  },

  async carryOut({ env_id, at, final }) {
    await purgeEnv(deps, { env_id, final })
    deps.logger.info('The content of a deleted environment was removed', { env_id, final })
    return { type: 'purged', env_id, at, final }
  },

  afterFailure: ({ env_id, at }) => ({ type: 'failed', env_id, at }),
})
