import { fact, Id, Text, Time } from './scalars.ts'

export const WorkerStarted = fact('WorkerStarted', {
  worker_id: Id,
  /** Host name and process id, for people. */
  node: Text,
  at: Time,
})

/** The worker finished or returned all of its work. */
export const WorkerStopped = fact('WorkerStopped', { worker_id: Id, at: Time })

/** The worker was declared dead, and its runs were ended before. */
export const WorkerLost = fact('WorkerLost', { worker_id: Id, at: Time })
