import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import type { CommandDeps } from '../commands/deps.ts'
import { type DeadWorker, formerWorkers, isDead, livingWorkers } from '../commands/runs/deadWorkers.ts'
import { loseWorker } from '../commands/runs/loseWorker.ts'
import type { Logger } from '../logger.ts'
import { Turns } from '../loops/turns.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Query } from '../ports/readModels.ts'
import type { Saga, SagaCore } from './saga.ts'

/** Interval between checks for lost workers. */
const LOOK_MS = 1000
/** Interval between searches for runs of former workers, which also follow each change of the living ones. */
const SEARCH_MS = 5000
/** A recovery that failed because of a defect, or that changed nothing, is tried again after this time. */
const AGAIN_MS = 60_000

export type RecoveryInput =
  | { readonly type: 'looked'; readonly dead: readonly DeadWorker[] }
  | { readonly type: 'recovered'; readonly worker_id: string }
  | { readonly type: 'failed'; readonly worker_id: string }

/** The workers whose runs are being ended, or could not be ended a moment ago. */
type Recovering = ReadonlySet<string>

/** Ends the runs of each dead worker once, and again after a while if that failed. */
export const recoverRunsCore: SagaCore<Recovering, RecoveryInput, DeadWorker> = {
  initial: new Set(),
  react(state, input, now) {
    switch (input.type) {
      case 'looked': {
        const found = input.dead.filter(({ worker_id }) => !state.has(worker_id))
        return {
          state: new Set([...state, ...found.map(({ worker_id }) => worker_id)]),
          steps: found.map((command) => ({ do: 'carryOut', key: command.worker_id, command })),
        }
      }
      case 'recovered':
        return { state: new Set([...state].filter((id) => id !== input.worker_id)), steps: [] }
      case 'failed': {
        const { worker_id } = input
        const again = { type: 'recovered', worker_id } as const // from then on it is found again
        return { state, steps: [{ do: 'setAlarm', key: worker_id, at: now + AGAIN_MS, input: again }] }
      }
      default:
        return input satisfies never
    }
  },
}

type Views = Pick<CommandDeps['views'], 'runs' | 'workers' | 'reach'>

/**
 * Reads one after the other. If the recoveries of many workers read at once, a slow database could answer all of them too late,
 * and again when all of them repeat it.
 */
const readInTurn = ({ runs, workers, reach }: Views) => {
  const turns = new Turns()
  const inTurn = <T>(read: () => Promise<T>): Promise<T> => turns.run('', read)
  return {
    runs: { find: (query: Query) => inTurn(() => runs.find(query)) },
    workers: {
      find: (query: Query) => inTurn(() => workers.find(query)),
      get: (worker_id: string) => inTurn(() => workers.get(worker_id)),
    },
    reach: (...to: Parameters<Views['reach']>) => inTurn(() => reach(...to)),
  }
}

/** Ends the runs of dead workers. Several nodes may watch, because the log accepts one end of each run. */
export const recoverRuns = (
  deps: Pick<CommandDeps, 'aggregates'> & {
    readonly store: Pick<EventStore, 'head'>
    readonly views: Views
    readonly liveness: { isLost(worker_id: string): boolean; forget(worker_id: string): Promise<void> }
    /** Whether a silent worker counts as lost now. After a long outage of the event store, the workers need time to return. */
    readonly mayRecover?: () => boolean
    readonly logger: Logger
  },
): Saga<Recovering, RecoveryInput, DeadWorker> => {
  const { mayRecover = () => true } = deps
  const isLost = (worker_id: string) => deps.liveness.isLost(worker_id) && mayRecover()
  const views = readInTurn(deps.views)
  const { aggregates } = deps
  return {
    name: 'recoverRuns',
    ...recoverRunsCore,

    async *inputs(signal) {
      let searched: { readonly among: string; readonly at: number } | undefined
      while (!signal.aborted) {
        const living = await livingWorkers(views)
        const dead: DeadWorker[] = living.filter(({ worker_id }) => isLost(worker_id))
        const among = living.map(({ worker_id }) => worker_id).join(' ')
        const now = clock.monotonic()
        if (searched?.among !== among || now - searched.at >= SEARCH_MS) {
          for await (const former of formerWorkers(views, living)) dead.push(former)
          searched = { among, at: now }
        }
        yield { type: 'looked', dead }
        await delay(LOOK_MS, undefined, { signal }).catch(() => {})
      }
    },

    async carryOut({ worker_id, node }) {
      await views.reach(await deps.store.head(), 'runs', 'workers') // its latest runs are known, and a worker that has just begun
      if (await isDead(views, worker_id, isLost)) {
        const { isChanged, runs_lost } = await loseWorker({ aggregates, views }, { worker_id })
        if (isChanged) deps.logger.warn('A worker was lost', { worker_id, node, runs_lost })
        await deps.liveness.forget(worker_id)
        if (!isChanged) return { type: 'failed', worker_id } // the facts of its runs have expired
      }
      return { type: 'recovered', worker_id }
    },

    afterFailure: ({ worker_id }) => ({ type: 'failed', worker_id }),
  }
}
