import { type Claimed, Dispatch } from '../commands/events/dispatch.ts'
import { claimRun } from '../commands/runs/claimRun.ts'
import { claimsOf } from '../commands/runs/claimsOf.ts'
import { isRetryable, stackOf } from '../errors.ts'
import { isHandledElsewhere, isOf, type Recorded } from '../events/event.ts'
import type { EventOf } from '../events/index.ts'
import type { RunPlan } from '../events/run.ts'
import type { ExecutionDeps } from './execution.ts'

/** Default time in which the reply to an append must arrive, milliseconds. A later reply counts as lost. */
const ANSWERED_MS = 6000

/** The worker that claims. */
interface Claimant {
  /** The id with which it claims now. */
  idNow(): string
  /** Whether it has begun the run. */
  has(run_id: string): boolean
  begin(plans: readonly RunPlan[], carrier: Recorded, worker_id: string): void
}

/** Appends the claims of a worker, and finds those whose append got no reply (W4). */
export class Claims {
  readonly #deps: ExecutionDeps
  readonly #worker: Claimant
  readonly #answeredMs: number
  /** Those with parts that are not claimed yet. */
  readonly #dispatches = new WeakMap<Recorded, Dispatch>()

  constructor(deps: ExecutionDeps, worker: Claimant, answeredMs: number = ANSWERED_MS) {
    this.#deps = deps
    this.#worker = worker
    this.#answeredMs = answeredMs
  }

  /**
   * Claims a delivered run, or the next part of the runs of a delivered event. A claim that was stored before is found. After an
   * error, the event is dispatched anew.
   */
  async claim(delivered: Recorded, worker_id: string): Promise<Claimed> {
    if (isHandledElsewhere(delivered.metadata)) return { plans: [], isLast: true }
    if (isOf(delivered, 'EventPublished')) return this.#claimPart(delivered, worker_id)
    if (isOf(delivered, 'RunRequested')) {
      const { run_id, stream_id } = delivered.event
      const plan = await claimRun(this.#deps, { requested: delivered, worker_id })
      const plans = plan
        ? [plan]
        : await this.#claimedBefore(stream_id, (claimed) => claimed.run_id === run_id)
      return { plans, isLast: true }
    }
    return { plans: [], isLast: true }
  }

  async #claimPart(published: Recorded<EventOf<'EventPublished'>>, worker_id: string): Promise<Claimed> {
    const { event_id, stream_id } = published.event
    const { maxRunDepth } = this.#deps
    const dispatch = this.#dispatches.get(published) ?? new Dispatch(this.#deps, { published, maxRunDepth })
    this.#dispatches.delete(published)
    const claimed = await dispatch.claim(worker_id)
    if (claimed?.isLast === false) this.#dispatches.set(published, dispatch)
    if (claimed) return claimed
    return { plans: await this.#claimedBefore(stream_id, (plan) => plan.event_id === event_id), isLast: true }
  }

  /** Reads the runs of a stream that this worker claimed by an append without a reply (W4). */
  async #claimedBefore(stream_id: string, belongs: (plan: RunPlan) => boolean): Promise<readonly RunPlan[]> {
    const claims = await claimsOf(this.#deps, { stream_id, worker_id: this.#worker.idNow() })
    return claims.filter(belongs)
  }

  /** W4: executes a claim of this worker unless its append gets a reply in time. */
  expectAnswer(started: Recorded<EventOf<'RunStarted'>>): void {
    const { run_id, stream_id, worker_id } = started.event
    let isLogged = false
    const isOpen = () => worker_id === this.#worker.idNow() && !this.#worker.has(run_id)
    const look = async () => {
      if (!isOpen()) return
      try {
        const claimed = await this.#claimedBefore(stream_id, (plan) => plan.run_id === run_id)
        this.#worker.begin(claimed, started, worker_id)
      } catch (error) {
        if (!isRetryable(error) && !isLogged) {
          this.#deps.logger.error('A claim without a reply could not be read; its run waits until it can', {
            run_id,
            error: stackOf(error),
          })
          isLogged = true
        }
        later() // the store is unavailable: the reply may still arrive
      }
    }
    const later = () => setTimeout(() => void look(), this.#answeredMs).unref()
    if (isOpen()) later()
  }
}
