import type { CommandDeps } from '../commands/deps.ts'
import { expireUploads } from '../commands/files/expireUploads.ts'
import { removeOrphans } from '../commands/files/removeOrphans.ts'
import type { Logger } from '../logger.ts'
import type { Saga, SagaCore } from './saga.ts'

const EVERY_MS = { expireUploads: 60_000, removeOrphans: 6 * 3600_000 } as const

type Sweep = keyof typeof EVERY_MS

export type SweepInput =
  /** `spread`, from 0 to 1, differs from node to node, so that they do not sweep in step. */
  { readonly type: 'started'; readonly spread: number } | { readonly type: 'due'; readonly sweep: Sweep }

interface SweepCommand {
  readonly sweep: Sweep
  /** Milliseconds since 1970. */
  readonly now: number
}

/** Each sweep is done at its interval; one that takes longer than its interval is left out once. */
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

/** Ends uploads that have expired and removes content that belongs to no file. Any number of nodes may. */
export const sweepFiles = (
  deps: Pick<CommandDeps, 'aggregates' | 'blobs'> & {
    readonly views: Pick<CommandDeps['views'], 'files' | 'uploads' | 'settled'>
    readonly logger: Logger
  },
): Saga<null, SweepInput, SweepCommand> => ({
  name: 'sweepFiles',
  ...sweepFilesCore,

  async *inputs(signal) {
    yield { type: 'started', spread: Math.random() }
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  },

  async carryOut({ sweep, now }) {
    if (sweep === 'expireUploads') await expireUploads(deps, { now })
    else {
      const removed = await removeOrphans(deps, { now })
      if (removed > 0) deps.logger.info('Content that belongs to no file was removed', { removed })
    }
    return undefined
  },
})
