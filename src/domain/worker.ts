import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

type Life = 'absent' | 'alive' | 'gone'

export type WorkerCommand =
  | { readonly type: 'StartWorker'; readonly worker_id: string; readonly node: string; readonly now: string }
  | { readonly type: 'StopWorker'; readonly worker_id: string; readonly now: string }
  | { readonly type: 'LoseWorker'; readonly worker_id: string; readonly now: string }

type WorkerEvent = EventOf<'WorkerStarted' | 'WorkerStopped' | 'WorkerLost'>

/** A worker id is used once: the worker starts, then stops or is lost. One that has ended does not start (`not_found`). */
export const worker: Decider<Life, WorkerCommand, WorkerEvent> = {
  initial: () => 'absent',

  decide(command, life) {
    const { worker_id, now } = command
    switch (command.type) {
      case 'StartWorker':
        if (life === 'gone') throw new AppError('not_found', `Worker ${worker_id} has ended`)
        return life === 'absent' ? [{ type: 'WorkerStarted', worker_id, node: command.node, at: now }] : []
      case 'StopWorker':
        return life === 'alive' ? [{ type: 'WorkerStopped', worker_id, at: now }] : []
      case 'LoseWorker':
        return life === 'alive' ? [{ type: 'WorkerLost', worker_id, at: now }] : []
      default:
        return command satisfies never
    }
  },

  evolve(_, { event }: Folded<WorkerEvent>) {
    switch (event.type) {
      case 'WorkerStarted':
        return 'alive'
      case 'WorkerStopped':
      case 'WorkerLost':
        return 'gone'
      default:
        return foreign(event)
    }
  },
}
