import type { EnvCause, Recorded } from '../events/event.ts'
import type { RunInput, RunPlan } from '../events/run.ts'

/** A run with a waiting caller and a stream of its own, before the log has a fact about it. JSON. */
export interface WantedRun {
  readonly plan: RunPlan
  readonly input: RunInput
  readonly cause: EnvCause
  /** ISO 8601 UTC. */
  readonly now: string
}

/** The worker of a process, for commands: they append its claims together with their own facts. */
export interface Claimer {
  readonly worker_id: string
  /** False once it begins to stop. */
  readonly isOpen: boolean
  /** Whether it can take one more run of the environment. */
  hasRoom(env_id: string): boolean
  /** Whether runs of the organization wait here for places, so that another worker is better for one more. */
  isFullFor(env_id: string): boolean
  /** The ids of the organizations whose runs wait for places. */
  readonly fullFor: readonly string[]
  /**
   * Appends a claim of this worker for an event or a run. A delivery that arrives meanwhile waits for the append. `of`: the
   * environment and the number of the claimed runs, which wait here until they begin.
   */
  claiming<T>(
    id: string,
    append: () => Promise<T>,
    of?: { readonly env_id: string; readonly runs: number },
  ): Promise<T>
  /**
   * Requests the run, claims it for this worker in the same append, and executes it. If the run was requested before,
   * the worker that claims it executes it.
   */
  take(run: WantedRun): Promise<void>
  /** Executes the runs of one input, `carrier`. Their `RunStarted` were appended in this worker's name. */
  execute(plans: readonly RunPlan[], carrier: Recorded, worker_id: string): void
}

/** Offers runs to the workers of other processes. */
export interface RunOffers {
  /** Offers the run to one worker; returns false when no worker has room. */
  make(run: WantedRun): boolean
}

/** Names the REPL session of a run. Its declarations are in a process of one worker, so its code runs there. */
export const sessionOf = ({
  plan: { target, project_id, evaluator },
}: Pick<WantedRun, 'plan'>): string | undefined =>
  'code' in target && target.repl_id !== undefined
    ? `${project_id} ${evaluator?.id} ${target.repl_id}`
    : undefined
