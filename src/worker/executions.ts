import { BoundedMap } from '../boundedMap.ts'
import { clock } from '../clock.ts'
import { actorOf, byRun } from '../events/actor.ts'
import { envIdOf, type Recorded } from '../events/event.ts'
import type { RunPlan } from '../events/run.ts'
import { ByteBudget } from '../loops/byteBudget.ts'
import { throttled } from '../loops/throttled.ts'
import { CONTENT_BYTES, CONTENT_WAIT_MS, INPUTS_IN_HAND, WEIGHT_CHARACTERS } from './capacity.ts'
import { type Execution, type ExecutionDeps, LOST, RETURNED } from './execution.ts'
import { InProgress } from './inProgress.ts'
import { type Line, lineOf, othersOf } from './lines.ts'
import { OutageWait } from './outageWait.ts'
import { RunMeter } from './runMeter.ts'
import { RunPlaces } from './runPlaces.ts'
import { beginSpan } from './runSpan.ts'
import { runToEnd, type RunToEndDeps } from './runToEnd.ts'

/** Number of remembered run ids, so that no claim is executed twice. */
const REMEMBERED = 16_384
/** Number of remembered cancellations of other runs. A claim whose reply arrives later than seconds counts as lost. */
const CANCELLED = 4096

/**
 * The runs that this process executes, from their claim to their terminal fact. Runs whose code has not begun
 * are returned when the worker stops or was declared lost (decision 0030).
 */
export class Executions {
  readonly #deps: RunToEndDeps
  readonly #places: RunPlaces
  readonly #executions = new Map<string, Execution>()
  /** Claims, and runs until their ends are stored. */
  readonly inProgress = new InProgress()
  readonly meter = new RunMeter()
  readonly #begun = new BoundedMap<string, true>(REMEMBERED)
  /** Cancelled runs that do not execute here: the reply to the claim of one may arrive after its cancellation. */
  readonly #cancelled = new BoundedMap<string, true>(CANCELLED)
  readonly #returned: (run_id: string) => void
  /** The worker stops: runs whose code has not begun are returned. */
  #isReturning = false
  /** The children are being ended, so no run begins. */
  #isClosing = false
  readonly #abandoned = new AbortController()

  /**
   * `changed` is called when more runs may be claimed, and `returned` before a run is returned. `sure` resolves when the worker
   * knows whether it was declared lost. `runTimeoutMs` applies to functions without a timeout.
   */
  constructor(
    deps: ExecutionDeps,
    {
      maxConcurrentRuns,
      runTimeoutMs,
      changed,
      returned,
      sure,
    }: {
      maxConcurrentRuns: number
      runTimeoutMs: number
      changed: () => void
      returned: (run_id: string) => void
      sure: () => Promise<void> | undefined
    },
  ) {
    this.#returned = returned
    this.#places = new RunPlaces(maxConcurrentRuns)
    this.#deps = {
      ...deps,
      runTimeoutMs,
      places: this.#places,
      outage: new OutageWait(deps.logger),
      meter: this.meter,
      content: new ByteBudget({
        name: 'the content of files and values in functions',
        totalBytes: CONTENT_BYTES,
        waitMs: CONTENT_WAIT_MS,
      }),
      changed,
      sure,
      warn: throttled(deps.logger),
      forget: (run_id) => this.#forget(run_id),
      abandoned: this.#abandoned.signal,
    }
  }

  /** Whether one more run of the organization may wait or begin here. */
  hasRoom(org_id: string): boolean {
    return this.#places.hasRoom(othersOf(org_id))
  }

  /** Whether runs of the organization wait here for places that other runs have: another worker is better for it. */
  isFullFor(org_id: string): boolean {
    const isWaiting = this.#places.weightOf(othersOf(org_id)) > 0
    return !this.hasRoom(org_id) || (isWaiting && this.#deps.runtime.isFullFor(org_id))
  }

  /** Whether a run of the line may be claimed: if none waits here, one waits for its turn. */
  mayClaim(line: Line): boolean {
    return this.#places.weightOf(line) === 0 || this.#places.hasRoom(line)
  }

  /** Counts the runs of a claim in progress as waiting ones: an event can have thousands of handlers. */
  async claiming<T>(line: Line, claim: () => Promise<T>, runs = 1): Promise<T> {
    this.#places.wait(line, runs)
    this.inProgress.begin()
    try {
      return await claim()
    } finally {
      this.#places.wait(line, -runs)
      this.inProgress.end()
      this.#deps.changed()
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
    const org_id = this.#deps.views.directory.orgIdOf(envIdOf(carrier))
    const execution: Execution = {
      plan,
      org_id,
      line: lineOf(org_id, plan),
      weight: 'code' in target ? 1 + Math.floor(target.code.length / WEIGHT_CHARACTERS) : 1,
      cancel: new AbortController(),
      state: 'waiting',
      hasBegun: false,
      claimedAt: clock.monotonic(),
      span: this.#deps.tracer ? beginSpan(this.#deps.tracer, plan, envIdOf(carrier)) : undefined,
      awaited: 0,
    }
    this.#executions.set(run_id, execution)
    this.#places.wait(execution.line, execution.weight)
    const cause = {
      env_id: envIdOf(carrier),
      correlation_id: carrier.metadata.correlation_id,
      causation_id: run_id,
    }
    // Evaluated code acts for the credential that sent it, a function for itself.
    const actor = plan.evaluator ? actorOf(carrier.metadata) : byRun(run_id)
    const callCause = { ...cause, ...actor }
    const inHand = this.#inHand(plan, carrier, execution)
    if (this.#cancelled.get(run_id)) execution.cancel.abort()
    else if (isLost) execution.cancel.abort(LOST)
    else if (this.#isClosing || (this.#isReturning && !this.#isNeeded(plan))) execution.cancel.abort(RETURNED)
    this.inProgress.begin()
    void runToEnd(this.#deps, { inHand, cause, callCause, worker_id, execution }).finally(() => {
      if (this.#executions.get(run_id) === execution) this.#executions.delete(run_id)
      this.#places.end(execution)
      this.inProgress.end()
      this.#deps.changed()
    })
  }

  cancel(run_id: string): void {
    const execution = this.#executions.get(run_id)
    if (execution) execution.cancel.abort()
    else this.#cancelled.set(run_id, true)
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

  #forget(run_id: string): void {
    this.#executions.delete(run_id)
    this.#begun.delete(run_id)
    this.#returned(run_id)
  }

  /** A run executes here and waits for this one. */
  #isNeeded({ parent_run_id }: RunPlan): boolean {
    return parent_run_id !== undefined && this.#executions.has(parent_run_id)
  }

  /** Only the first waiting runs of a line keep their input in memory; the others read it again. */
  #inHand(plan: RunPlan, carrier: Recorded, { line }: Execution): Recorded | null {
    return this.#places.weightOf(line) <= INPUTS_IN_HAND || !plan.input_at ? carrier : null
  }
}
