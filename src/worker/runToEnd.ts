import { GoneRun } from '../commands/runs/beginRun.ts'
import { type AppError, isRetryable } from '../errors.ts'
import type { RunError } from '../events/run.ts'
import type { Logger } from '../logger.ts'
import type { Outcome } from '../ports/runtime.ts'
import { type ClaimedRun, type Execution, LOST, RETURNED } from './execution.ts'
import { withoutInside } from './insideErrors.ts'
import { ExpiredInput } from './inputs.ts'
import { type InvokeDeps, invokeRun } from './invokeRun.ts'
import { RunOutput } from './runOutput.ts'
import { endSpan } from './runSpan.ts'
import { storeEnd } from './storeEnd.ts'

export interface RunToEndDeps extends InvokeDeps {
  /** Logs outages, which many runs meet at once. */
  readonly warn: Logger['warn']
  /**
   * Called before a run is returned, and for one that recovery returned: it may be claimed here again, also before the reply to
   * its return arrives.
   */
  readonly forget: (run_id: string) => void
  /** Aborts when no more ends are to be stored. */
  readonly abandoned: AbortSignal
}

/** The outcome of a run that ended before its code began. */
const CANCELLED: Outcome = {
  status: 'failed',
  error: { code: 'cancelled', message: 'The run was cancelled' },
}

/** Executes a claimed run and stores its end, or returns the run if its code did not begin (decision 0030). */
export const runToEnd = async (deps: RunToEndDeps, claimed: ClaimedRun): Promise<void> => {
  const { cause, worker_id, execution } = claimed
  const { plan } = execution
  const output = new RunOutput(deps, plan.run_id, cause)
  let outcome: Outcome | undefined
  let isGone = false
  while (!outcome) {
    try {
      outcome = execution.cancel.signal.aborted ? CANCELLED : await invokeRun(deps, claimed, output)
    } catch (error) {
      isGone = error instanceof GoneRun
      outcome = isGone ? CANCELLED : failedWith(execution, error, deps.logger)
      if (!outcome) await waitForEndOfOutage(deps, execution, error)
    }
  }
  const { signal } = execution.cancel
  deps.outage.leave(signal)
  const { reason } = signal
  const isReturned = isGone || (!execution.hasBegun && (reason === RETURNED || reason === LOST))
  if (outcome.status === 'failed' && reason === LOST) outcome = { status: 'lost', error: LOST }
  if (isReturned) deps.forget(plan.run_id)
  else deps.meter.ended(plan.run_type, outcome, execution.claimedAt)
  await output.close()
  const turn = deps.turns.take(execution.org_id)
  if (turn) await turn
  const end = { plan, outcome: isReturned ? null : outcome, worker_id }
  // A run that is gone may be claimed here again by now, and its code may have begun: this claim has no end to store.
  if (!isGone) await storeEnd(deps, end, cause, deps.abandoned) // W3
  if (execution.span) endSpan(execution.span, end.outcome)
}

/** Before its code has begun, an abort ends the run whatever else failed, and an outage is no outcome. */
const failedWith = (
  { plan, hasBegun, cancel }: Execution,
  error: unknown,
  logger: Logger,
): Outcome | undefined => {
  if (!hasBegun && cancel.signal.aborted) return CANCELLED
  if (!hasBegun && isRetryable(error)) return undefined
  const about = { run_id: plan.run_id, signal: cancel.signal, logger }
  const found = withoutInside(error, about)
  // A build, a project or an input that was removed does not return.
  const isFinal = !hasBegun && found.code === 'not_found'
  return { status: 'failed', error: failureOf(found), ...(isFinal && { isFinal }) }
}

const waitForEndOfOutage = async (
  { places, outage }: InvokeDeps,
  execution: Execution,
  error: unknown,
): Promise<void> => {
  const { plan, cancel } = execution
  places.leave(execution)
  await outage.pause({ run_id: plan.run_id, signal: cancel.signal }, error)
}

const failureOf = (error: AppError): RunError => ({ code: failureCodeOf(error), message: error.message })

const failureCodeOf = (error: AppError): string => {
  if (error instanceof ExpiredInput) return 'input_expired'
  return error.code === 'not_found' ? 'function_not_found' : 'internal_error'
}
