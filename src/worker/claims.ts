import { dispatchEvent } from '../commands/events/dispatchEvent.ts'
import { claimRun } from '../commands/runs/claimRun.ts'
import { claimsOf } from '../commands/runs/claimsOf.ts'
import { isRetryable, stackOf } from '../errors.ts'
import { isOf, type Recorded } from '../events/event.ts'
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

/** Imported and restored facts were handled where they were stored first. */
const isHandledElsewhere = ({ first_at, unhandled }: Recorded['metadata']): boolean =>
  first_at !== undefined && unhandled !== true

/** Appends the claims of a worker, and finds those whose append got no reply (W4). */
export class Claims {
  readonly #deps: ExecutionDeps
  readonly #worker: Claimant
  readonly #answeredMs: number

  constructor(deps: ExecutionDeps, worker: Claimant, answeredMs: number = ANSWERED_MS) {
    this.#deps = deps
    this.#worker = worker
    this.#answeredMs = answeredMs
  }

  /** Claims the runs of a delivered event, or a delivered run. A claim that was stored before is found. */
  async claim(delivered: Recorded, worker_id: string): Promise<readonly RunPlan[]> {
    if (isHandledElsewhere(delivered.metadata)) return []
    if (isOf(delivered, 'EventPublished')) {
      const { event_id, stream_id } = delivered.event
      const plans = await dispatchEvent(this.#deps, {
        published: delivered,
        worker_id,
        maxRunDepth: this.#deps.maxRunDepth,
      })
      return plans ?? this.#claimedBefore(stream_id, (plan) => plan.event_id === event_id)
    }
    if (isOf(delivered, 'RunRequested')) {
      const { run_id, stream_id } = delivered.event
      const plan = await claimRun(this.#deps, { requested: delivered, worker_id })
      return plan ? [plan] : this.#claimedBefore(stream_id, (claimed) => claimed.run_id === run_id)
    }
    return []
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
