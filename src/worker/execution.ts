import type { EnvCause, Recorded } from '../events/event.ts'
import type { RunError, RunPlan } from '../events/run.ts'
import type { FairTurns } from '../loops/fairTurns.ts'
import type { Logger } from '../logger.ts'
import type { FunctionRates } from '../plans/functionRates.ts'
import type { Runtime } from '../ports/runtime.ts'
import type { Span } from '../ports/tracer.ts'
import type { Placed } from './runPlaces.ts'
import type { CredentialNow } from './runRights.ts'
import type { HostCallDeps } from './serveHostCall.ts'

/** The dependencies of the runs that execute here. */
export interface ExecutionDeps extends HostCallDeps {
  readonly runtime: Runtime
  readonly credentialNow: CredentialNow
  readonly logger: Logger
  readonly turns: Pick<FairTurns, 'take'>
  readonly functionRates: Pick<FunctionRates, 'turnsOf'>
}

/** A run from its claim to its terminal fact. */
export interface Execution extends Placed {
  readonly plan: RunPlan
  /** User code may have begun, so the run cannot be returned. */
  hasBegun: boolean
  /** Monotonic milliseconds. */
  readonly claimedAt: number
  /** Its part of a trace, if there is a collector. */
  readonly span: Span | undefined
}

/** An execution with the facts that it was claimed with. */
export interface ClaimedRun {
  /** The fact with the input; null if it is read again later. */
  readonly inHand: Recorded | null
  readonly cause: EnvCause
  /** The cause of what its code does. */
  readonly callCause: EnvCause
  readonly worker_id: string
  readonly execution: Execution
}

/** The reason to abort a run whose worker was declared lost. */
export const LOST: RunError = {
  code: 'worker_lost',
  message: 'The worker missed its heartbeats and was declared lost',
}

/** The reason to abort a run that another worker is to execute, because this one stops. */
export const RETURNED = Symbol('returned')
