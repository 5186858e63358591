import { orderOf, type Projection } from './projection.ts'

export type WorkerDoc = {
  readonly worker_id: string
  readonly node: string
  readonly alive: boolean
  readonly order: string
}

/** The workers that have not stopped, so that recovery finds the lost ones. */
export const workers: Projection<WorkerDoc> = {
  name: 'workers',
  version: 1,
  indexes: [{ equal: ['alive'], sort: 'order' }],
  handles: ['WorkerStarted', 'WorkerStopped', 'WorkerLost'],
  idsOf: ({ event }) => ('worker_id' in event ? [event.worker_id] : []),
  evolve(doc, recorded) {
    const { event } = recorded
    if (event.type === 'WorkerStarted') {
      return { worker_id: event.worker_id, node: event.node, alive: true, order: orderOf(recorded) }
    }
    return doc && { ...doc, alive: false }
  },
}
