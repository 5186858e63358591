import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

export type EnvCommand =
  | ({ readonly type: 'CreateEnv' } & Omit<EventOf<'EnvCreated'>, 'type'>)
  /** `most`: the number of names that the plan allows. */
  | { readonly type: 'NameConsumer'; readonly name: string; readonly most: number }

type EnvEvent = EventOf<'EnvCreated' | 'ConsumerNamed'>

interface Env {
  readonly exists: boolean
  /** The names of the consumers of its stream. */
  readonly consumers: ReadonlySet<string>
}

/** The rules of an environment: it is created once, and a second creation is a no-op. So is a known name of a consumer. */
export const env: Decider<Env, EnvCommand, EnvEvent> = {
  initial: () => ({ exists: false, consumers: new Set() }),

  decide(command, { exists, consumers }) {
    if (command.type === 'CreateEnv') {
      const { type: _, ...created } = command
      return exists ? [] : [{ type: 'EnvCreated', ...created }]
    }
    const { name, most } = command
    if (consumers.has(name)) return []
    if (consumers.size >= most)
      throw new AppError(
        'quota_exceeded',
        `consumer: the plan allows ${most} names of consumers per environment; use one that exists`,
      )
    return [{ type: 'ConsumerNamed', name }]
  },

  evolve(state, { event }: Folded<EnvEvent>) {
    switch (event.type) {
      case 'EnvCreated':
        return { ...state, exists: true }
      case 'ConsumerNamed':
        return { ...state, consumers: new Set(state.consumers).add(event.name) }
      default:
        return foreign(event)
    }
  },
}
