import { IN_FLIGHT, MAX_CONCURRENT_RUNS } from './capacity.ts'
import { hostname } from 'node:os'
import { claimRun } from '../commands/runs/claimRun.ts'
import { claimsOf } from '../commands/runs/claimsOf.ts'
import { dispatchEvent } from '../commands/events/dispatchEvent.ts'
import { storeRequest } from '../commands/runs/requestRun.ts'
import { startWorker } from '../commands/runs/startWorker.ts'
import { stopWorker } from '../commands/runs/stopWorker.ts'
import { isOf, type Recorded } from '../events/event.ts'
import type { EventOf, EventType } from '../events/index.ts'
import type { RunPlan } from '../events/run.ts'
import { messageOf } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Pauses } from '../loops/backoff.ts'
import { keepGoing } from '../loops/keepGoing.ts'
import type { Claimer, WantedRun } from '../ports/claimer.ts'
import type { Delivery } from '../ports/eventStore.ts'
import { Bypass } from './bypass.ts'
import { DirectClaims } from './directClaims.ts'
import { type ExecutionDeps, Executions } from './executions.ts'
import { FailedClaims } from './failedClaims.ts'
import { HeldDeliveries } from './heldDeliveries.ts'

export interface WorkerOptions {
  /** Maximum number of concurrent runs, default `MAX_CONCURRENT_RUNS`. */
  readonly maxConcurrentRuns?: number
  /** Timeout of a run whose function has no timeout, milliseconds. */
  readonly runTimeoutMs: number
  /** There is no other worker, so this one receives every delivery. */
  readonly alone?: boolean
  /** A reply to an append counts as lost after this time, milliseconds; default `ANSWERED_MS`. */
  readonly answeredMs?: number
  /** Pauses between the attempts to claim a delivery that fails because of a defect. */
  readonly claimPauses?: Pauses
  /** Receives each id with which this worker claims; the heartbeats use that id. */
  readonly onIdentity?: (worker_id: string) => void
  /** Receives the reason when one of its loops stays stopped. */
  readonly onGivenUp?: (reason: string) => void
}

/** Time for runs in progress when the worker stops, milliseconds. */
const RUN_DRAIN_MS = 20_000

/** Time to store the ends of runs whose process was closed, milliseconds. */
const LAST_ENDS_MS = 2000

/** With this many held deliveries, the events of organizations with room are read ahead of the others. */
const FULL = IN_FLIGHT / 2
/** With fewer, the consumer group alone is fast enough again. */
const ROOMY = IN_FLIGHT / 4

/** Default time in which the reply to an append must arrive, milliseconds. A later reply counts as lost. */
const ANSWERED_MS = 6000

/**
 * Turns events into runs. Invariants:
 * W1: a run is executed by the worker that appended its `RunStarted`, and by no other (I3).
 * W2: an event is acknowledged to the group only after its claim is durable, here or elsewhere.
 * W3: every claimed run ends: storing its end is retried until it succeeds or the worker dies.
 * W4: a claim whose append got no reply is found in the log, also when its event is delivered to another worker.
 * W5: a worker that was declared lost (for example after a pause) continues with a new id and ends all claims of its
 * old id.
 * W6: the events of an organization do not wait for those of another: deliveries of an organization without room are held,
 * and while they fill the window, the others' events are claimed ahead of it.
 */
export class Worker implements Claimer {
  readonly #deps: ExecutionDeps
  readonly #options: WorkerOptions
  readonly #executions: Executions
  readonly #direct = new DirectClaims()
  readonly #stopping = new AbortController()
  readonly #failed: FailedClaims
  #worker_id = newId()
  readonly #held = new HeldDeliveries()
  readonly #bypass: Bypass

  constructor(deps: ExecutionDeps, options: WorkerOptions) {
    this.#deps = deps
    this.#options = options
    this.#failed = new FailedClaims(deps, { pauses: options.claimPauses })
    const { maxConcurrentRuns = MAX_CONCURRENT_RUNS, runTimeoutMs } = options
    this.#executions = new Executions(deps, {
      maxConcurrentRuns,
      runTimeoutMs,
      changed: () => this.#takeHeld(),
    })
    this.#bypass = new Bypass(deps, {
      mayClaim: (org_id) => this.#executions.mayClaim(org_id),
      claim: (org_id, event) => this.#executions.claiming(org_id, () => this.#claimAhead(event)),
    })
  }

  get worker_id(): string {
    return this.#worker_id
  }

  get isOpen(): boolean {
    return !this.#stopping.signal.aborted
  }

  get fullFor(): readonly string[] {
    return this.#executions.fullFor
  }

  isFullFor(env_id: string): boolean {
    return this.#executions.isFullFor(this.#deps.views.directory.orgIdOf(env_id))
  }

  hasRoom(env_id: string): boolean {
    return this.isOpen && this.#executions.hasRoom(this.#deps.views.directory.orgIdOf(env_id))
  }

  async start(): Promise<void> {
    const { store, logger } = this.#deps
    const signal = this.#stopping.signal
    const head = await store.head()
    await this.#announce()
    const { onGivenUp } = this.#options
    const background = { signal, logger, onGivenUp }
    void keepGoing('The worker', (until) => this.#consume(until), background)
    void keepGoing('The watch over runs', (until) => this.#watch(head, until), background)
  }

  /** Claims no more runs, waits for those in progress, then ends the remaining ones. */
  async stop({ drainMs }: { drainMs: number } = { drainMs: RUN_DRAIN_MS }): Promise<void> {
    this.#stopping.abort()
    this.#bypass.close()
    await this.#executions.drain(drainMs)
    await this.#deps.runtime.close()
    await this.#executions.drain(LAST_ENDS_MS)
    await stopWorker(this.#deps, { worker_id: this.worker_id })
  }

  async take(run: WantedRun): Promise<void> {
    const worker_id = this.#worker_id
    const { run_id } = run.plan
    const requested = await this.claiming(run_id, () => storeRequest(this.#deps, run, worker_id))
    if (requested) this.execute([run.plan], requested, worker_id)
  }

  claiming<T>(id: string, append: () => Promise<T>): Promise<T> {
    return this.#direct.during(id, append)
  }

  execute(plans: readonly RunPlan[], carrier: Recorded, worker_id: string): void {
    this.#direct.add(subjectOf(carrier))
    for (const plan of plans) this.#executions.begin(plan, carrier, worker_id)
  }

  async #announce(): Promise<void> {
    const worker_id = this.#worker_id
    this.#options.onIdentity?.(worker_id)
    await startWorker(this.#deps, { worker_id, node: `${hostname()}/${process.pid}` })
  }

  async #consume(signal: AbortSignal): Promise<void> {
    const options = { types: ['EventPublished', 'RunRequested'], inFlight: IN_FLIGHT, signal } as const
    for await (const delivery of this.#deps.store.consume('workers', options)) {
      if (signal.aborted) return // the unacknowledged event is delivered to another worker
      const org_id = this.#orgOf(delivery.event)
      if (!this.#held.has(org_id) && this.#executions.mayClaim(org_id)) this.#take(org_id, delivery)
      else {
        this.#held.add(org_id, delivery)
        if (this.#held.size >= FULL) this.#bypass.open(delivery.event.cursor) // W6
      }
    }
  }

  #takeHeld(): void {
    if (this.#held.size === 0 || !this.isOpen) return
    for (const [org_id, delivery] of this.#held.ready((org_id) => this.#executions.mayClaim(org_id)))
      this.#take(org_id, delivery)
    if (this.#held.size < ROOMY) this.#bypass.close()
  }

  /** Claims an event before its delivery. The delivery claims it if this fails. */
  async #claimAhead(event: Recorded): Promise<void> {
    const worker_id = this.#worker_id
    const id = subjectOf(event)
    if (await this.#direct.has(id)) return
    try {
      const claimed = await this.claiming(id, () => this.#claim(event, worker_id))
      this.execute(claimed, event, worker_id)
    } catch (error) {
      this.#deps.logger.warn('An event could not be claimed ahead of its delivery', {
        event: event.id,
        error: messageOf(error),
      })
    }
  }

  #orgOf({ metadata }: Recorded): string {
    return this.#deps.views.directory.orgIdOf(metadata.env_id ?? '') // a fact without one fails when it is claimed
  }

  #take(org_id: string, delivery: Delivery): void {
    void this.#executions.claiming(org_id, () => this.#claimDelivered(delivery))
  }

  async #claimDelivered(delivery: Delivery): Promise<void> {
    const { event } = delivery
    if (await this.#direct.has(subjectOf(event))) return delivery.ack()
    const turn = this.#deps.turns.take(this.#orgOf(event))
    if (turn) await turn
    const worker_id = this.#worker_id
    try {
      const claimed = await this.#claim(event, worker_id)
      delivery.ack() // W2
      for (const plan of claimed) this.#executions.begin(plan, event, worker_id)
    } catch (error) {
      void this.#failed.settle(delivery, error) // it may wait for long
    }
  }

  async #claim(delivered: Recorded, worker_id: string): Promise<readonly RunPlan[]> {
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
    const claims = await claimsOf(this.#deps, { stream_id, worker_id: this.#worker_id })
    return claims.filter(belongs)
  }

  /** W4: executes a claim of this worker unless its append gets a reply in time. */
  #expectAnswer(started: Recorded<EventOf<'RunStarted'>>): void {
    const { run_id, stream_id, worker_id } = started.event
    const isOpen = () => worker_id === this.#worker_id && !this.#executions.has(run_id)
    const look = async () => {
      if (!isOpen()) return
      try {
        const claimed = await this.#claimedBefore(stream_id, (plan) => plan.run_id === run_id)
        for (const plan of claimed) this.#executions.begin(plan, started, worker_id)
      } catch {
        later() // the store is unavailable: the reply may still arrive
      }
    }
    const { answeredMs = ANSWERED_MS } = this.#options
    const later = () => setTimeout(() => void look(), answeredMs).unref()
    if (isOpen()) later()
  }

  /** Follows the facts about this worker's runs and about the worker itself. */
  async #watch(after: string, signal: AbortSignal): Promise<void> {
    const types: EventType[] = ['RunCancelled', 'WorkerLost']
    if (!this.#options.alone) types.push('RunStarted')
    for await (const { events } of this.#deps.store.subscribe({ after, types, signal })) {
      for (const recorded of events) {
        const { event } = recorded
        if (isOf(recorded, 'RunStarted')) this.#expectAnswer(recorded)
        else if (event.type === 'RunCancelled') this.#executions.cancel(event.run_id)
        else if (event.type === 'WorkerLost' && event.worker_id === this.#worker_id) await this.#beginAgain()
      }
    }
  }

  /** Continues with a new id (W5). */
  async #beginAgain(): Promise<void> {
    this.#deps.logger.warn(
      'This worker missed its heartbeats and was declared lost; continuing with a new id',
      {
        worker_id: this.#worker_id,
      },
    )
    this.#worker_id = newId()
    this.#executions.loseAll()
    await this.#announce()
  }
}

/** The id to claim for a delivery: of the event or of the run. */
const subjectOf = ({ id, event }: Recorded): string => (event.type === 'RunRequested' ? event.run_id : id)
