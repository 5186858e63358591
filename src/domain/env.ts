import type { EventOf } from '../events/index.ts'
import type { Decider } from './decider.ts'

export type EnvCommand = { readonly type: 'CreateEnv' } & Omit<EventOf<'EnvCreated'>, 'type'>

/** The rules of an environment: it is created once, and a second creation is a no-op. */
export const env: Decider<{ readonly exists: boolean }, EnvCommand, EventOf<'EnvCreated'>> = {
  initial: () => ({ exists: false }),

  decide({ type: _, ...created }, { exists }) {
    return exists ? [] : [{ type: 'EnvCreated', ...created }]
  },

  evolve: (env, { event }) => (event.type === 'EnvCreated' ? { exists: true } : env),
}
