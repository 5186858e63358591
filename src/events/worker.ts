import Type from 'typebox'
import { fact, Id, Time } from './scalars.ts'

export const WorkerStarted = fact('WorkerStarted', {
  worker_id: Id,
  /** Host name and process id, for people. */
  node: Type.String(),
  at: Time,
})

/** The worker finished or handed back everything it had. */
export const WorkerStopped = fact('WorkerStopped', { worker_id: Id, at: Time })

/** The worker is known to be dead; its runs end as `worker_lost`. */
export const WorkerLost = fact('WorkerLost', { worker_id: Id, at: Time })
