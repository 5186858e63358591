import { setTimeout as delay } from 'node:timers/promises'
import type { CommandDeps } from '../commands/deps.ts'
import { aliveWorkers, loseWorker } from '../commands/runs/loseWorker.ts'
import type { Logger } from '../logger.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Saga, SagaCore } from './saga.ts'

/** Interval between checks for silent workers. */
const LOOK_MS = 1000

interface SilentWorker {
  readonly worker_id: string
  readonly node: string
}

export type RecoveryInput =
  | { readonly type: 'looked'; readonly silent: readonly SilentWorker[] }
  | { readonly type: 'recovered'; readonly worker_id: string }

/** The workers whose runs are being ended, or could not be ended: each is attempted once. */
type Recovering = ReadonlySet<string>

/** Declares a silent worker lost once: its runs fail and follow their retry policy. */
export const recoverRunsCore: SagaCore<Recovering, RecoveryInput, SilentWorker> = {
  initial: new Set(),
  react(state, input) {
    switch (input.type) {
      case 'looked': {
        const found = input.silent.filter(({ worker_id }) => !state.has(worker_id))
        return {
          state: new Set([...state, ...found.map(({ worker_id }) => worker_id)]),
          steps: found.map((command) => ({ do: 'carryOut', key: command.worker_id, command })),
        }
      }
      case 'recovered':
        return { state: new Set([...state].filter((id) => id !== input.worker_id)), steps: [] }
      default:
        return input satisfies never
    }
  },
}

/** Ends the runs of silent workers. Several nodes may watch, because the log accepts one end of each run. */
export const recoverRuns = (
  deps: Pick<CommandDeps, 'aggregates'> & {
    readonly store: Pick<EventStore, 'head'>
    readonly views: Pick<CommandDeps['views'], 'runs' | 'workers' | 'reach'>
    readonly liveness: { isLost(worker_id: string): boolean; forget(worker_id: string): void }
    readonly logger: Logger
  },
): Saga<Recovering, RecoveryInput, SilentWorker> => ({
  name: 'recoverRuns',
  ...recoverRunsCore,

  async *inputs(signal) {
    while (!signal.aborted) {
      const silent: SilentWorker[] = []
      for await (const { worker_id, node } of aliveWorkers(deps.views))
        if (deps.liveness.isLost(worker_id)) silent.push({ worker_id, node })
      yield { type: 'looked', silent }
      await delay(LOOK_MS, undefined, { signal }).catch(() => {})
    }
  },

  async carryOut({ worker_id, node }) {
    await deps.views.reach(await deps.store.head()) // so that its latest runs are known
    const runs_ended = await loseWorker(deps, { worker_id })
    deps.logger.warn('A worker was lost', { worker_id, node, runs_ended })
    deps.liveness.forget(worker_id)
    return { type: 'recovered', worker_id }
  },
})
