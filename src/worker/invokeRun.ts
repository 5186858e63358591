import { beginRun } from '../commands/runs/beginRun.ts'
import { type ByteBudget, holding } from '../loops/byteBudget.ts'
import { unlessAborted } from '../loops/deadline.ts'
import type { HostCall, Outcome } from '../ports/runtime.ts'
import { contentBytes, SHARED_LOSSES } from './capacity.ts'
import type { ClaimedRun, Execution, ExecutionDeps } from './execution.ts'
import { inputOf } from './inputs.ts'
import { withoutInside } from './insideErrors.ts'
import { KeptPayloads } from './keptPayloads.ts'
import { laneOf } from './laneOf.ts'
import type { OutageWait } from './outageWait.ts'
import type { RunMeter } from './runMeter.ts'
import type { RunOutput } from './runOutput.ts'
import type { RunPlaces } from './runPlaces.ts'
import { rightsOf } from './runRights.ts'
import { serveHostCall, takingOf } from './serveHostCall.ts'

export interface InvokeDeps extends ExecutionDeps {
  /** The timeout of functions without one, milliseconds. */
  readonly runTimeoutMs: number
  readonly places: RunPlaces
  readonly outage: OutageWait
  readonly meter: RunMeter
  /** Memory for the content in host calls. */
  readonly content: ByteBudget
  /** Called when more runs may be claimed. */
  readonly changed: () => void
  /** Resolves when the worker knows whether it was declared lost while it was paused. */
  readonly sure: () => Promise<void> | undefined
}

/**
 * Gives a run to a child, serves its host calls, and returns its outcome. Throws if the run cannot begin, and at once if it
 * is cancelled or returned meanwhile: it may be claimed here again, also while an engine does not answer. Throws also if an outage
 * withholds the input from the child.
 */
export const invokeRun = async (
  deps: InvokeDeps,
  { inHand, cause, callCause, worker_id, execution }: ClaimedRun,
  output: RunOutput,
): Promise<Outcome> => {
  const { env_id } = cause
  const { store, payloads, keyring, runtime } = deps
  const { plan, org_id } = execution
  const { signal } = execution.cancel
  const traceparent = execution.span?.traceparent ?? plan.traceparent
  const build = await unlessAborted(signal, laneOf(deps, { env_id, org_id }, plan))
  const kept = new KeptPayloads(payloads)
  const under = {
    kept,
    plan,
    env_id,
    cause: callCause,
    traceparent,
    rights: rightsOf(plan, deps.credentialNow),
    signal,
  }
  const rate = deps.functionRates.turnsOf(env_id, signal)
  const untilAllowed = (call: HostCall): Promise<void> | null => {
    const taking = takingOf(call)
    return rate && taking && rate.take(taking)
  }
  const withoutInsideOf = (error: unknown): never => {
    throw withoutInside(error, { run_id: plan.run_id, signal, logger: deps.logger })
  }
  const outcome = await runtime.invoke({
    build,
    run: {
      run_id: plan.run_id,
      stream_id: plan.stream_id,
      run_type: plan.run_type,
      attempt: plan.attempt,
      event_id: plan.event_id ?? null,
      origin_run_id: plan.origin_run_id ?? null,
      project_id: plan.project_id,
      project_name: plan.project_name,
      ...(traceparent !== undefined && { traceparent }),
    },
    target: plan.target,
    loadInput: async () => {
      await takePlace(deps, execution)
      const input = await inputOf(plan, inHand, { store, payloads, keyring }, kept)
      if (!plan.marks_begin) return input
      await deps.sure()
      signal.throwIfAborted()
      await beginRun(deps, { plan, worker_id }, cause)
      return input
    },
    onStart: () => {
      execution.hasBegun = true
      deps.meter.started(execution.claimedAt)
      if (!kept.hasInput) deps.outage.over(signal)
    },
    timeoutMs: plan.timeout ?? deps.runTimeoutMs,
    alone: (plan.lost_with_process ?? 0) >= SHARED_LOSSES,
    signal,
    untilAllowed: (call) => (call.op === 'run' ? null : untilAllowed(call)),
    onHostCall: (call, onRequested) => {
      const serve = () => serveHostCall(deps, under, call, onRequested).catch(withoutInsideOf)
      const turn = deps.turns.take(org_id)
      if (call.op === 'run') {
        // Its place is free while it waits for the rate, too.
        const allowed = untilAllowed(call) ?? turn
        return deps.places.whileAwaiting(execution, allowed ? allowed.then(serve) : serve())
      }
      const hold = () => whileHolding(deps.content, execution, call, serve)
      return turn ? turn.then(hold) : hold()
    },
    onLog: (line, hold) => output.write(line, hold),
  })
  if (isUnfed(outcome, kept)) {
    execution.hasBegun = false
    throw kept.outage
  }
  return outcome
}

/** The child ended the run because an outage withheld its input, without which the function is not called. */
const isUnfed = (outcome: Outcome, { outage }: KeptPayloads): boolean =>
  outage !== undefined && outcome.status === 'failed' && outcome.error.code === 'unavailable'

/** Content in host calls takes memory of the organization, because all runs may ask for it at once. */
const whileHolding = (
  content: ByteBudget,
  { org_id, cancel }: Execution,
  call: HostCall,
  serve: () => Promise<unknown>,
): Promise<unknown> => {
  const bytes = contentBytes(call)
  if (bytes === 0) return serve()
  return holding(content, { owner: org_id, bytes, signal: cancel.signal }, serve)
}

/** Takes a place for a run when a child has room for it. */
const takePlace = async ({ places, turns, changed }: InvokeDeps, execution: Execution): Promise<void> => {
  if (!places.tryTake(execution)) await places.take(execution)
  if (execution.state === 'ended') return
  changed()
  const turn = turns.take(execution.org_id)
  if (turn) await turn
}
