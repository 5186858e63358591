import type { CommandDeps } from '../commands/deps.ts'
import { expireUploads } from '../commands/files/expireUploads.ts'
import { removeOrphanZips } from '../commands/builds/removeOrphanZips.ts'
import { removeOrphans } from '../commands/files/removeOrphans.ts'
import type { Logger } from '../logger.ts'
import type { Saga, SagaCore } from './saga.ts'

const EVERY_MS = { expireUploads: 60_000, removeOrphans: 6 * 3600_000 } as const

type Sweep = keyof typeof EVERY_MS

export type SweepInput =
  /** `spread`, from 0 to 1, differs between nodes, so that they do not sweep at the same time. */
  { readonly type: 'started'; readonly spread: number } | { readonly type: 'due'; readonly sweep: Sweep }

interface SweepCommand {
  readonly sweep: Sweep
  /** Milliseconds since 1970. */
  readonly now: number
}

/** Repeats each sweep at its interval. If a sweep takes longer than its interval, the next one is skipped. */
export const sweepFilesCore: SagaCore<null, SweepInput, SweepCommand> = {
  initial: null,
  react(state, input, now) {
    if (input.type === 'started') {
      const at = now + input.spread * EVERY_MS.expireUploads
      return { state, steps: [alarm('expireUploads', at), alarm('removeOrphans', at)] }
    }
    const { sweep } = input
    return {
      state,
      steps: [{ do: 'carryOut', key: sweep, command: { sweep, now } }, alarm(sweep, now + EVERY_MS[sweep])],
    }
  },
}

const alarm = (sweep: Sweep, at: number) =>
  ({ do: 'setAlarm', key: sweep, at, input: { type: 'due', sweep } }) as const

/** Ends expired uploads and removes content that belongs to no file or build. Several nodes may run it. */
export const sweepFiles = (
  deps: Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'> & {
    readonly views: Pick<CommandDeps['views'], 'builds' | 'files' | 'uploads' | 'settled'>
    readonly logger: Logger
  },
): Saga<null, SweepInput, SweepCommand> => {
  const suspects = new Set<string>()
  return {
    name: 'sweepFiles',
    ...sweepFilesCore,

    async *inputs(signal) {
      yield { type: 'started', spread: Math.random() }
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    },

    async carryOut({ sweep, now }) {
      if (sweep === 'expireUploads') await expireUploads(deps, { now })
      else {
        const removed = (await removeOrphans(deps, { now })) + (await removeOrphanZips(deps, suspects))
        if (removed > 0) deps.logger.info('Content that belongs to no file or build was removed', { removed })
      }
      return undefined
    },
  }
}
