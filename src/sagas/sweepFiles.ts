import type { CommandDeps } from '../commands/deps.ts'
import { expireUploads } from '../commands/files/expireUploads.ts'
import { removeOrphanZips } from '../commands/builds/removeOrphanZips.ts'
import { removeOrphans } from '../commands/files/removeOrphans.ts'
import { removeOrphanPayloads } from '../commands/transfer/removeOrphanPayloads.ts'
import type { Logger } from '../logger.ts'
import { earlierNow } from '../loops/twoClocks.ts'
import type { Saga } from './saga.ts'
import { type SweepCommand, type SweepInput, sweepingCore, sweepInputs } from './sweeping.ts'

const EVERY_MS = { expireUploads: 60_000, removeOrphans: 6 * 3600_000 } as const

type Sweep = keyof typeof EVERY_MS

export const sweepFilesCore = sweepingCore(EVERY_MS)

/** Ends expired uploads and removes content that belongs to no file, build or environment. Several nodes may run it. */
export const sweepFiles = (
  deps: Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'> & {
    readonly views: Pick<CommandDeps['views'], 'builds' | 'files' | 'uploads' | 'settled'>
    readonly logger: Logger
  },
): Saga<null, SweepInput<Sweep>, SweepCommand<Sweep>> => {
  const suspects = { zips: new Set<string>(), payloads: new Set<string>() }
  return {
    name: 'sweepFiles',
    ...sweepFilesCore,

    inputs: sweepInputs,

    async carryOut({ sweep, now: onThisNode }) {
      const now = earlierNow(deps.store, onThisNode)
      if (sweep === 'expireUploads') await expireUploads(deps, { now })
      else {
        const removed =
          (await removeOrphans(deps, { now })) +
          (await removeOrphanZips(deps, suspects.zips)) +
          (await removeOrphanPayloads(deps, suspects.payloads))
        if (removed > 0)
          deps.logger.info('Content that belongs to no file, build or environment was removed', { removed })
      }
      return undefined
    },
  }
}
