import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

export type EnvCommand = { readonly type: 'CreateEnv' } & Omit<EventOf<'EnvCreated'>, 'type'>

type EnvEvent = EventOf<'EnvCreated'>

/** The rules of an environment: it is created once, and a second creation is a no-op. */
export const env: Decider<{ readonly exists: boolean }, EnvCommand, EnvEvent> = {
  initial: () => ({ exists: false }),

  decide({ type: _, ...created }, { exists }) {
    return exists ? [] : [{ type: 'EnvCreated', ...created }]
  },

  evolve: (_, { event }: Folded<EnvEvent>) =>
    event.type === 'EnvCreated' ? { exists: true } : foreign(event.type),
}
