import { BoundedMap } from '../boundedMap.ts'
import { clock } from '../clock.ts'
import { type AppError, isRetryable } from '../errors.ts'
import { actorOf, byRun } from '../events/actor.ts'
import { type EnvCause, envIdOf, type Recorded } from '../events/event.ts'
import type { RunError, RunPlan } from '../events/run.ts'
import type { Logger } from '../logger.ts'
import type { FairTurns } from '../loops/fairTurns.ts'
import type { FunctionRates } from '../plans/functionRates.ts'
import { ByteBudget, holding } from '../loops/byteBudget.ts'
import { throttled } from '../loops/throttled.ts'
import {
  CONTENT_BYTES,
  CONTENT_WAIT_MS,
  contentBytes,
  INPUTS_IN_HAND,
  SHARED_LOSSES,
  WEIGHT_CHARACTERS,
} from './capacity.ts'
import { beginRun } from '../commands/runs/beginRun.ts'
import { inputOf } from './inputs.ts'
import { withoutInside } from './insideErrors.ts'
import { InProgress } from './inProgress.ts'
import type { HostCall, Outcome, Runtime } from '../ports/runtime.ts'
import type { Span } from '../ports/tracer.ts'
import { beginSpan, endSpan } from './runSpan.ts'
import { KeptPayloads } from './keptPayloads.ts'
import { laneOf } from './laneOf.ts'
import { OutageWait } from './outageWait.ts'
import { type Placed, RunPlaces } from './runPlaces.ts'
import { RunMeter } from './runMeter.ts'
import { storeEnd } from './storeEnd.ts'
import { type CredentialNow, rightsOf } from './runRights.ts'
import { RunOutput } from './runOutput.ts'
import { type HostCallDeps, serveHostCall } from './serveHostCall.ts'

export interface ExecutionDeps extends HostCallDeps {
  readonly runtime: Runtime
  readonly credentialNow: CredentialNow
  readonly logger: Logger
  readonly turns: Pick<FairTurns, 'take'>
  readonly functionRates: Pick<FunctionRates, 'turnsOf'>
}

/** Number of remembered run ids, so that no claim is executed twice. */
const REMEMBERED = 16_384

const LOST: RunError = {
  code: 'worker_lost',
  message: 'The worker missed its heartbeats and was declared lost',
}

/** The reason to abort a run that another worker is to execute, because this one stops. */
const RETURNED = Symbol('returned')

/** The outcome of a run that ended before its code began. */
const CANCELLED: Outcome = {
  status: 'failed',
  error: { code: 'cancelled', message: 'The run was cancelled' },
}

/** A run from its claim to its terminal fact. */
interface Execution extends Placed {
  readonly plan: RunPlan
  /** User code may have begun, so the run cannot be returned. */
  hasBegun: boolean
  /** Monotonic milliseconds. */
  readonly claimedAt: number
  /** Its part of a trace, if there is a collector. */
  readonly span: Span | undefined
}

interface Begun {
  /** The fact with the input; null if it is read again later. */
  readonly inHand: Recorded | null
  readonly cause: EnvCause
  /** The cause of what its code does. */
  readonly callCause: EnvCause
  readonly worker_id: string
  readonly execution: Execution
}

/**
 * The runs that this process executes, from their claim to their terminal fact. Runs whose code has not begun
 * are returned when the worker stops or was declared lost (decision 0030).
 */
export class Executions {
  readonly #deps: ExecutionDeps
  readonly #ending: Parameters<typeof storeEnd>[0]
  readonly #runTimeoutMs: number
  readonly #places: RunPlaces
  readonly #outage: OutageWait
  readonly #executions = new Map<string, Execution>()
  /** Claims, and runs until their ends are stored. */
  readonly inProgress = new InProgress()
  readonly meter = new RunMeter()
  readonly #begun = new BoundedMap<string, true>(REMEMBERED)
  readonly #changed: () => void
  readonly #returned: (run_id: string) => void
  /** The worker stops: runs whose code has not begun are returned. */
  #isReturning = false
  /** The children are being ended, so no run begins. */
  #isClosing = false
  readonly #abandoned = new AbortController()
  readonly #content = new ByteBudget({
    name: 'the content of files and values in functions',
    totalBytes: CONTENT_BYTES,
    waitMs: CONTENT_WAIT_MS,
  })

  /**
   * `changed` is called when more runs may be claimed, and `returned` before a run is returned. `runTimeoutMs` applies to
   * functions without a timeout.
   */
  constructor(
    deps: ExecutionDeps,
    {
      maxConcurrentRuns,
      runTimeoutMs,
      changed,
      returned,
    }: {
      maxConcurrentRuns: number
      runTimeoutMs: number
      changed: () => void
      returned: (run_id: string) => void
    },
  ) {
    this.#deps = deps
    this.#ending = { ...deps, warn: throttled(deps.logger) }
    this.#runTimeoutMs = runTimeoutMs
    this.#changed = changed
    this.#returned = returned
    this.#places = new RunPlaces(maxConcurrentRuns)
    this.#outage = new OutageWait(deps.logger)
  }

  /** Whether one more run of the organization may wait or begin here. */
  hasRoom(org_id: string): boolean {
    return this.#places.hasRoom(org_id)
  }

  /** Whether runs of the organization wait here for places that other runs have: another worker is better for it. */
  isFullFor(org_id: string): boolean {
    return (
      !this.hasRoom(org_id) || (this.#places.weightOf(org_id) > 0 && this.#deps.runtime.isFullFor(org_id))
    )
  }

  /** Whether a run of the organization may be claimed: if none waits here, one waits for its turn. */
  mayClaim(org_id: string): boolean {
    return this.#places.weightOf(org_id) === 0 || this.hasRoom(org_id)
  }

  /** Counts a claim in progress as a waiting run. */
  async claiming<T>(org_id: string, claim: () => Promise<T>): Promise<T> {
    this.#places.wait(org_id, 1)
    this.inProgress.begin()
    try {
      return await claim()
    } finally {
      this.#places.wait(org_id, -1)
      this.inProgress.end()
      this.#changed()
    }
  }

  /** The organizations whose runs wait here for places. */
  get fullFor(): readonly string[] {
    return this.#places.waiting.filter((org_id) => this.isFullFor(org_id))
  }

  /** The runs that wait for a place or a child, and those that a child has. */
  get counts(): { readonly waiting: number; readonly running: number } {
    let running = 0
    for (const { hasBegun } of this.#executions.values()) if (hasBegun) running++
    return { waiting: this.#executions.size - running, running }
  }

  /** Whether this process began the run, which may have ended since. */
  has(run_id: string): boolean {
    return this.#executions.has(run_id) || (this.#begun.get(run_id) ?? false)
  }

  /**
   * Executes a run that the worker claimed, once. `carrier` is the fact with its input. `isLost`: the worker was declared
   * lost under the id of the claim, so the run is returned.
   */
  begin(plan: RunPlan, carrier: Recorded, worker_id: string, isLost: boolean): void {
    const { run_id, target } = plan
    if (this.has(run_id)) return
    this.#begun.set(run_id, true)
    const execution: Execution = {
      plan,
      org_id: this.#deps.views.directory.orgIdOf(envIdOf(carrier)),
      weight: 'code' in target ? 1 + Math.floor(target.code.length / WEIGHT_CHARACTERS) : 1,
      cancel: new AbortController(),
      state: 'waiting',
      hasBegun: false,
      claimedAt: clock.monotonic(),
      span: this.#deps.tracer ? beginSpan(this.#deps.tracer, plan, envIdOf(carrier)) : undefined,
      awaited: 0,
    }
    this.#executions.set(run_id, execution)
    this.#places.wait(execution.org_id, execution.weight)
    const cause = {
      env_id: envIdOf(carrier),
      correlation_id: carrier.metadata.correlation_id,
      causation_id: run_id,
    }
    // Evaluated code acts for the credential that sent it, a function for itself.
    const actor = plan.evaluator ? actorOf(carrier.metadata) : byRun(run_id)
    const callCause = { ...cause, ...actor }
    const inHand = this.#inHand(plan, carrier, execution)
    if (isLost) execution.cancel.abort(LOST)
    else if (this.#isClosing || (this.#isReturning && !this.#isNeeded(plan))) execution.cancel.abort(RETURNED)
    this.inProgress.begin()
    void this.#run({ inHand, cause, callCause, worker_id, execution }).finally(() => {
      if (this.#executions.get(run_id) === execution) this.#executions.delete(run_id)
      this.#places.end(execution)
      this.inProgress.end()
      this.#changed()
    })
  }

  cancel(run_id: string): void {
    this.#executions.get(run_id)?.cancel.abort()
  }

  /** Ends every run as lost, as the recovery does, because the worker was declared lost. */
  loseAll(): void {
    for (const { cancel } of this.#executions.values()) cancel.abort(LOST)
  }

  /** Returns the runs whose code has not begun, now and from now on. Those that another run here waits for continue. */
  returnWaiting(): void {
    this.#isReturning = true
    for (const { plan, hasBegun, cancel } of this.#executions.values())
      if (!hasBegun && !this.#isNeeded(plan)) cancel.abort(RETURNED)
  }

  /** The runs that wait for child runs which do not execute here. */
  get awaiting(): readonly RunPlan[] {
    const executions = [...this.#executions.values()]
    const children = Map.groupBy(executions, ({ plan }) => plan.parent_run_id)
    return executions.flatMap(({ plan, awaited }) =>
      awaited > (children.get(plan.run_id)?.length ?? 0) ? [plan] : [],
    )
  }

  /** From now on, no run begins. */
  closing(): void {
    this.#isClosing = true
    for (const { hasBegun, cancel } of this.#executions.values()) if (!hasBegun) cancel.abort(RETURNED)
  }

  /** Stores no more ends: the recovery ends the remaining runs. */
  abandon(): void {
    this.#abandoned.abort()
  }

  async #run(begun: Begun): Promise<void> {
    const { cause, worker_id, execution } = begun
    const { plan } = execution
    const output = new RunOutput(this.#deps, plan.run_id, cause)
    let outcome: Outcome | undefined
    while (!outcome) {
      try {
        outcome = execution.cancel.signal.aborted ? CANCELLED : await this.#invoke(begun, output)
      } catch (error) {
        outcome = this.#failedWith(execution, error)
        if (!outcome) await this.#waitForEndOfOutage(execution, error)
      }
    }
    const { reason } = execution.cancel.signal
    const isReturned = !execution.hasBegun && (reason === RETURNED || reason === LOST)
    if (outcome.status === 'failed' && reason === LOST) outcome = { status: 'lost', error: LOST }
    if (isReturned) this.#forget(plan.run_id)
    else this.meter.ended(plan.run_type, outcome, execution.claimedAt)
    await output.close()
    const turn = this.#deps.turns.take(execution.org_id)
    if (turn) await turn
    const end = { plan, outcome: isReturned ? null : outcome, worker_id }
    await storeEnd(this.#ending, end, cause, this.#abandoned.signal) // W3
    if (execution.span) endSpan(execution.span, end.outcome)
  }

  /** An outage before its code has begun is no outcome. */
  #failedWith({ plan, hasBegun, cancel }: Execution, error: unknown): Outcome | undefined {
    if (!hasBegun && !cancel.signal.aborted && isRetryable(error)) return undefined
    const about = { run_id: plan.run_id, signal: cancel.signal, logger: this.#deps.logger }
    return { status: 'failed', error: failureOf(withoutInside(error, about)) }
  }

  async #waitForEndOfOutage(execution: Execution, error: unknown): Promise<void> {
    const { plan, cancel } = execution
    this.#places.leave(execution)
    await this.#outage.pause({ run_id: plan.run_id, signal: cancel.signal }, error)
  }

  /** The run may be claimed here again, also before the reply to its return arrives. */
  #forget(run_id: string): void {
    this.#executions.delete(run_id)
    this.#begun.delete(run_id)
    this.#returned(run_id)
  }

  /** A run executes here and waits for this one. */
  #isNeeded({ parent_run_id }: RunPlan): boolean {
    return parent_run_id !== undefined && this.#executions.has(parent_run_id)
  }

  /** Only the first waiting runs of an organization keep their input in memory; the others read it again. */
  #inHand(plan: RunPlan, carrier: Recorded, { org_id }: Execution): Recorded | null {
    return this.#places.weightOf(org_id) <= INPUTS_IN_HAND || !plan.input_at ? carrier : null
  }

  async #invoke(
    { inHand, cause, callCause, worker_id, execution }: Begun,
    output: RunOutput,
  ): Promise<Outcome> {
    const deps = this.#deps
    const { env_id } = cause
    const { store, views, payloads, keyring, runtime } = deps
    const { plan, org_id } = execution
    const { signal } = execution.cancel
    const traceparent = execution.span?.traceparent ?? plan.traceparent
    const build = await laneOf(views, { env_id, org_id }, plan)
    const kept = new KeptPayloads(payloads)
    const under = {
      kept,
      plan,
      env_id,
      cause: callCause,
      traceparent,
      rights: rightsOf(plan, deps.credentialNow),
      signal,
      turns: deps.functionRates.turnsOf(env_id, signal),
    }
    return runtime.invoke({
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
        await this.#start(execution)
        const input = await inputOf(plan, inHand, { store, payloads, keyring }, kept)
        if (plan.marks_begin) await beginRun(deps, { plan, worker_id }, cause)
        return input
      },
      onStart: () => {
        execution.hasBegun = true
        this.meter.started(execution.claimedAt)
        this.#outage.over()
      },
      timeoutMs: plan.timeout ?? this.#runTimeoutMs,
      alone: (plan.lost_with_process ?? 0) >= SHARED_LOSSES,
      signal,
      onHostCall: (call) => {
        const serve = () =>
          serveHostCall(deps, under, call).catch((error: unknown) => {
            throw withoutInside(error, { run_id: plan.run_id, signal, logger: deps.logger })
          })
        const turn = deps.turns.take(org_id)
        if (call.op === 'run') return this.#places.whileAwaiting(execution, turn ? turn.then(serve) : serve())
        const hold = () => this.#whileHolding(execution, call, serve)
        return turn ? turn.then(hold) : hold()
      },
      onLog: (line) => output.write(line),
    })
  }

  /** Content in host calls takes memory of the organization, because all runs may ask for it at once. */
  #whileHolding(
    { org_id, cancel }: Execution,
    call: HostCall,
    serve: () => Promise<unknown>,
  ): Promise<unknown> {
    const bytes = contentBytes(call)
    if (bytes === 0) return serve()
    return holding(this.#content, { owner: org_id, bytes, signal: cancel.signal }, serve)
  }

  /** Takes a place for a run when a child has room for it. */
  async #start(execution: Execution): Promise<void> {
    if (!this.#places.tryTake(execution)) await this.#places.take(execution)
    if (execution.state === 'ended') return
    this.#changed()
    const turn = this.#deps.turns.take(execution.org_id)
    if (turn) await turn
  }
}

const failureOf = (error: AppError): RunError => ({
  code: error.code === 'not_found' ? 'function_not_found' : 'internal_error',
  message: error.message,
})
