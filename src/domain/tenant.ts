import type { EventOf } from '../events/index.ts'
import type { Decider } from './decider.ts'

type TenantEvent = EventOf<'OrgCreated' | 'EnvCreated' | 'ApiKeyCreated'>
export type TenantCommand = { readonly type: 'Create'; readonly fact: TenantEvent }

/** Organizations, environments and API keys, each in a stream of its own: created once, whoever asks again. */
export const tenant: Decider<{ readonly exists: boolean }, TenantCommand, TenantEvent> = {
  initial: () => ({ exists: false }),
  decide: (command, { exists }) => (exists ? [] : [command.fact]),
  evolve: () => ({ exists: true }),
}
