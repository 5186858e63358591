import { expireCalls } from '../commands/orgs/expireCalls.ts'
import { deleteOrphanEnvs } from '../commands/orgs/deleteOrphanEnvs.ts'
import { forgetConsumers } from '../commands/streams/forgetConsumers.ts'
import type { Logger } from '../logger.ts'
import { earlierNow } from '../loops/twoClocks.ts'
import type { Saga } from './saga.ts'
import { type SweepCommand, type SweepInput, sweepingCore, sweepInputs } from './sweeping.ts'

const EVERY_MS = {
  expireCalls: 6 * 3600_000,
  forgetConsumers: 6 * 3600_000,
  deleteOrphanEnvs: 6 * 3600_000,
} as const

type Sweep = keyof typeof EVERY_MS

export const sweepTenantsCore = sweepingCore(EVERY_MS)

/**
 * Forgets what the plans keep no longer, consumers that are not used, and environments of deleted organizations. The numbers of each day are recorded before the
 * store removes its events. Several nodes may run it.
 */
export const sweepTenants = (
  deps: Parameters<typeof expireCalls>[0] &
    Parameters<typeof forgetConsumers>[0] &
    Parameters<typeof deleteOrphanEnvs>[0] & {
      readonly logger: Logger
    },
): Saga<null, SweepInput<Sweep>, SweepCommand<Sweep>> => {
  const recorded = new Set<string>()
  return {
    name: 'sweepTenants',
    ...sweepTenantsCore,
    inputs: sweepInputs,

    async carryOut({ sweep, now: onThisNode }) {
      const now = earlierNow(deps.store, onThisNode)
      if (sweep === 'expireCalls') {
        const removed = await expireCalls(deps, { now, recorded })
        if (removed > 0) deps.logger.info('Payloads that the plans keep no longer were removed', { removed })
        const facts = (await deps.store.scavenge?.()) ?? 0
        if (facts > 0) deps.logger.info('Facts that the plans keep no longer were removed', { facts })
      } else if (sweep === 'deleteOrphanEnvs') {
        const deleted = await deleteOrphanEnvs(deps)
        if (deleted > 0) deps.logger.info('Environments of deleted organizations were deleted', { deleted })
      } else {
        const forgotten = await forgetConsumers(deps, { now })
        if (forgotten > 0)
          deps.logger.info('Consumers that were not used lately were forgotten', { forgotten })
      }
      return undefined
    },
  }
}
