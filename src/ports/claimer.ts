import type { EnvCause, Recorded } from '../events/event.ts'
import type { RunInput, RunPlan } from '../events/run.ts'

/** A run that a caller waits for, on a stream of its own, before any fact about it is in the log. JSON. */
export interface WantedRun {
  readonly plan: RunPlan
  readonly input: RunInput
  readonly cause: EnvCause
  /** ISO 8601 UTC. */
  readonly now: string
}

/** What the worker of a process offers to the commands that append what it would claim next. */
export interface Claimer {
  readonly worker_id: string
  /** Whether it can execute one more run. */
  readonly hasRoom: boolean
  /** Appends a claim of this worker for an event or a run. Its delivery can overtake the answer, so it waits meanwhile. */
  claiming<T>(id: string, append: () => Promise<T>): Promise<T>
  /**
   * Requests the run, claims it for this worker in the same append, and executes it. A run that was requested before is
   * left to the worker that claims it.
   */
  take(run: WantedRun): Promise<void>
  /** Executes runs whose `RunStarted` was appended in this worker's name: all that `carrier`, their input, asks for. */
  execute(plans: readonly RunPlan[], carrier: Recorded, worker_id: string): void
}

/** Offers runs to the workers of other processes. */
export interface RunOffers {
  /** Offers the run to one worker; false when there is none to offer it to. */
  make(run: WantedRun): boolean
}

/** Names the REPL session that a run belongs to: its declarations are in a process of one worker, so its code goes there. */
export const sessionOf = ({ plan: { target, project_id } }: Pick<WantedRun, 'plan'>): string | undefined =>
  'code' in target && target.repl_id !== undefined ? `${project_id} ${target.repl_id}` : undefined
