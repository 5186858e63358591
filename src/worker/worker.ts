import { IN_FLIGHT, MAX_CONCURRENT_RUNS } from './capacity.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import { PART_RUNS } from '../commands/events/planRuns.ts'
import { requestedChildren } from '../commands/runs/requestedChildren.ts'
import { storeRequest } from '../commands/runs/requestRun.ts'
import { stopWorker } from '../commands/runs/stopWorker.ts'
import { type Cursor, isOf, type Recorded, START } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { RunPlan } from '../events/run.ts'
import { messageOf } from '../errors.ts'
import type { Pauses } from '../loops/backoff.ts'
import { keepGoing } from '../loops/keepGoing.ts'
import { Waiters } from '../projections/waiters.ts'
import type { Claimer, WantedRun } from '../ports/claimer.ts'
import type { Delivery } from '../ports/eventStore.ts'
import { Bypass, type ClaimsAhead } from './bypass.ts'
import { Claims } from './claims.ts'
import { DirectClaims } from './directClaims.ts'
import type { ExecutionDeps } from './execution.ts'
import { Executions } from './executions.ts'
import { FailedClaims } from './failedClaims.ts'
import { HeldDeliveries, needsRoom } from './heldDeliveries.ts'
import { LateEvents } from './lateEvents.ts'
import { type Line, lineOfEvent, orgOf, othersOf } from './lines.ts'
import { PauseWatch } from './pauseWatch.ts'
import { type OnIdentity, Registration } from './registration.ts'
import type { UntakenEvents } from './untakenEvents.ts'

export interface WorkerOptions {
  /** Maximum number of concurrent runs, default `MAX_CONCURRENT_RUNS`. */
  readonly maxConcurrentRuns?: number
  /** Timeout of a run whose function has no timeout, milliseconds. */
  readonly runTimeoutMs: number
  /** There is no other worker, so this one receives every delivery, and none declares it lost. */
  readonly alone?: boolean
  /** Whether this worker has not reached the event store for so long that others may have declared it lost. */
  readonly isCutOff?: () => boolean
  /** The events that no worker has taken; without it, each waits for its delivery. */
  readonly untaken?: Pick<UntakenEvents, 'late'>
  /** An event that no worker has taken for this time is taken before its delivery, milliseconds. */
  readonly lateMs?: number
  /** A reply to an append counts as lost after this time, milliseconds; default `ANSWERED_MS`. */
  readonly answeredMs?: number
  /** Pauses between the attempts to claim a delivery that fails because of a defect. */
  readonly claimPauses?: Pauses
  /** Receives each id before this worker claims with it; the heartbeats use that id. Resolves when one was stored. */
  readonly onIdentity?: OnIdentity
  /** Receives the reason when one of its loops stays stopped. */
  readonly onGivenUp?: (reason: string) => void
}

/** Time for runs in progress when the worker stops, milliseconds. */
const RUN_DRAIN_MS = 20_000

/** Time to store the ends of runs whose process was closed, milliseconds. */
const LAST_ENDS_MS = 2000

/** Interval between looks for child runs of runs in progress while the worker stops, milliseconds. */
const CHILDREN_MS = 50
/** The runs whose child runs are looked for at a time. */
const CHILDREN = 128

/** With this many held deliveries, the events of organizations with room are read ahead of the others. */
const FULL = IN_FLIGHT / 2
/** With fewer, the consumer group alone is fast enough again. */
const ROOMY = IN_FLIGHT / 4

/**
 * Turns events into runs. Invariants:
 * W1: a run is executed by the worker that appended its `RunStarted`, and by no other (I3).
 * W2: an event is acknowledged to the group only after its claim is durable, here or elsewhere.
 * W3: every claimed run ends: storing its end is retried until it succeeds or the worker dies.
 * W4: a claim whose append got no reply is found in the log, also when its event is delivered to another worker.
 * W5: a worker that was declared lost (for example after a pause) ends all claims of its old id. It claims again only when
 * its new id is registered, because recovery ends the runs of workers that are not. An id is registered only when a heartbeat
 * of it is stored, because a worker that cannot store one is declared lost again. After a pause it claims nothing, and begins no
 * code that may start only once, until it has read in the log whether it was declared lost.
 * W6: the events of an organization do not wait for those of another, and child runs do not wait for the runs that may wait
 * for them: deliveries of a line without room are held, and while they fill the window, the others' are claimed ahead of it.
 * W7: an event does not wait for a worker that is paused or does not hear: after some seconds, another worker takes it.
 * W8: a worker that stops leaves nothing behind: it returns what has not begun, and ends the rest. Otherwise it does not
 * say that it stopped, and recovery ends what is left.
 * W9: an event with many handlers is claimed in parts. Its delivery is held between them, so a part is claimed when there is
 * room, the other events of the organization take turns with it, and another worker can claim the rest.
 */
export class Worker implements Claimer {
  readonly #deps: ExecutionDeps
  readonly #options: WorkerOptions
  readonly #executions: Executions
  readonly #direct: DirectClaims
  readonly #stopping = new AbortController()
  /** The time of runs in progress is over. Until then, also while it stops, the worker follows what concerns them. */
  readonly #drained = new AbortController()
  readonly #failed: FailedClaims
  readonly #registration: Registration
  #draining: Promise<void> | undefined
  /** The position in the log up to which the facts about this worker are known. */
  #watched: Cursor = START
  readonly #watching = new Waiters()
  readonly #pauses: PauseWatch | null
  readonly #held = new HeldDeliveries()
  readonly #bypass: Bypass
  readonly #late: LateEvents | null
  readonly #claims: Claims

  constructor(deps: ExecutionDeps, options: WorkerOptions) {
    this.#deps = deps
    this.#options = options
    this.#registration = new Registration(deps, options.onIdentity)
    this.#failed = new FailedClaims(deps, { pauses: options.claimPauses })
    const { maxConcurrentRuns = MAX_CONCURRENT_RUNS, runTimeoutMs } = options
    this.#pauses = options.alone ? null : this.#openPauseWatch()
    this.#executions = new Executions(deps, {
      maxConcurrentRuns,
      runTimeoutMs,
      changed: () => this.#takeHeld(),
      returned: (run_id) => this.#direct.forget(run_id),
      sure: () => this.#pauses?.sure(),
    })
    this.#direct = new DirectClaims(this.#executions.inProgress)
    const claimant = {
      idNow: () => this.worker_id,
      has: (run_id: string) => this.#executions.has(run_id),
      begin: (...claimed: Parameters<Worker['execute']>) => this.#begin(...claimed),
    }
    this.#claims = new Claims(deps, claimant, options.answeredMs)
    const ahead: ClaimsAhead = {
      mayClaim: (line) => this.#mayClaim(line),
      claim: (line, event) => this.#claimAhead(line, event),
    }
    this.#bypass = new Bypass(deps, ahead)
    const { untaken } = options
    this.#late = untaken ? new LateEvents({ ...deps, untaken }, ahead, options) : null
  }

  get worker_id(): string {
    return this.#registration.worker_id
  }

  /** The runs of this worker: those that have ended, and those in progress. */
  get runs(): Pick<Executions, 'meter' | 'counts'> {
    return this.#executions
  }

  get isOpen(): boolean {
    return !this.#registration.isLost && !this.#stopping.signal.aborted && (this.#pauses?.isSure ?? true) // W5
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

  /** Rejects with `unavailable` if `starting` aborts before its id is registered. */
  async start(starting = this.#stopping.signal): Promise<void> {
    const { store, logger } = this.#deps
    const signal = this.#stopping.signal
    this.#watched = await store.head()
    await this.#registration.register(starting)
    const { onGivenUp } = this.#options
    const background = { signal, logger, onGivenUp }
    const watching = { ...background, signal: this.#drained.signal }
    void keepGoing('The worker', (until) => this.#consume(until), background)
    void keepGoing('The watch over runs', (until) => this.#watch(until), watching)
    const late = this.#late
    if (late) void keepGoing('The claims of late events', (until) => late.run(until), background) // W7
  }

  /** Takes nothing more, returns the runs that have not begun, and waits for the others (W8). */
  drain(drainMs = RUN_DRAIN_MS): Promise<void> {
    return (this.#draining ??= this.#drain(drainMs))
  }

  async #drain(drainMs: number): Promise<void> {
    this.#stopping.abort() // unclaimed deliveries go to another worker
    this.#bypass.close()
    this.#executions.returnWaiting()
    void this.#claimChildren(this.#drained.signal)
    await this.#executions.inProgress.over(drainMs)
  }

  /** Drains, then ends the remaining runs as lost (W8). */
  async stop({ drainMs }: { drainMs?: number } = {}): Promise<void> {
    const { runtime, logger } = this.#deps
    const { inProgress } = this.#executions
    await this.drain(drainMs)
    this.#executions.closing()
    this.#drained.abort()
    await runtime.close()
    await inProgress.over(LAST_ENDS_MS)
    const { count } = inProgress
    this.#executions.abandon()
    if (count > 0)
      return logger.warn('The worker stopped before all of its runs had ended; recovery ends them', { count })
    try {
      await stopWorker(this.#deps, { worker_id: this.worker_id })
    } catch (error) {
      logger.warn('The end of the worker could not be stored', { error: messageOf(error) })
    }
  }

  async take(run: WantedRun): Promise<void> {
    const worker_id = this.worker_id
    const { run_id } = run.plan
    const requested = await this.claiming(run_id, () => storeRequest(this.#deps, run, worker_id))
    if (requested) this.execute([run.plan], requested, worker_id)
  }

  claiming<T>(id: string, append: () => Promise<T>, of?: { env_id: string; runs: number }): Promise<T> {
    const during = () => this.#direct.during(id, append)
    if (!of) return during()
    const line = othersOf(this.#deps.views.directory.orgIdOf(of.env_id))
    return this.#executions.claiming(line, during, of.runs)
  }

  execute(plans: readonly RunPlan[], carrier: Recorded, worker_id: string): void {
    this.#direct.add(subjectOf(carrier))
    this.#begin(plans, carrier, worker_id)
  }

  #begin(plans: readonly RunPlan[], carrier: Recorded, worker_id: string): void {
    const isLost = !this.#registration.isCurrent(worker_id) // W5
    for (const plan of plans) this.#executions.begin(plan, carrier, worker_id, isLost)
  }

  #mayClaim(line: Line): boolean {
    return this.isOpen && this.#executions.mayClaim(line)
  }

  async #consume(signal: AbortSignal): Promise<void> {
    const options = { types: ['EventPublished', 'RunRequested'], inFlight: IN_FLIGHT, signal } as const
    for await (const delivery of this.#deps.store.consume('workers', options)) {
      if (signal.aborted) return // the unacknowledged event is delivered to another worker
      const line = this.#lineOf(delivery.event)
      if (!needsRoom(delivery.event)) this.#take(line, delivery)
      else if (!this.#held.has(line) && this.#mayClaim(line)) this.#take(line, delivery)
      else {
        this.#held.add(line, delivery)
        if (this.#held.size >= FULL) this.#bypass.open(delivery.event.cursor) // W6
      }
    }
  }

  #takeHeld(): void {
    if (this.#held.size === 0 || !this.isOpen) return
    for (const [line, delivery] of this.#held.ready((line) => this.#mayClaim(line)))
      this.#take(line, delivery)
    if (this.#held.size < ROOMY) this.#bypass.close()
  }

  /** Claims an event before its delivery, as far as the worker has room. The delivery claims the rest, or all if this fails. */
  async #claimAhead(line: Line, event: Recorded): Promise<void> {
    const id = subjectOf(event)
    if (await this.#direct.has(id)) return
    const claim = async (): Promise<boolean> => {
      const worker_id = this.worker_id
      const { plans, isLast } = await this.claiming(id, () => this.#claims.claim(event, worker_id))
      if (isLast) this.#direct.add(id)
      this.#begin(plans, event, worker_id)
      return isLast
    }
    try {
      const runs = this.#runsOf(event)
      while (!(await this.#executions.claiming(line, claim, runs)) && this.#mayClaim(line));
    } catch (error) {
      this.#deps.logger.warn('An event could not be claimed ahead of its delivery', {
        event: event.id,
        error: messageOf(error),
      })
    }
  }

  #lineOf(event: Recorded): Line {
    const { env_id = '' } = event.metadata // a fact without one fails when it is claimed
    return lineOfEvent(this.#deps.views.directory.orgIdOf(env_id), event)
  }

  #take(line: Line, delivery: Delivery): void {
    const runs = this.#runsOf(delivery.event)
    void this.#executions.claiming(line, () => this.#claimDelivered(line, delivery), runs)
  }

  /** The number of runs that the next claim of an event starts, as far as this node knows. */
  #runsOf({ event, metadata }: Recorded): number {
    if (event.type !== 'EventPublished') return 1
    const { directory } = this.#deps.views
    const handlers = directory.handlersOf(metadata.env_id ?? '', event.event_type).length
    return Math.min(PART_RUNS, Math.max(1, handlers))
  }

  async #claimDelivered(line: Line, delivery: Delivery): Promise<void> {
    const { event } = delivery
    if (await this.#direct.has(subjectOf(event))) return delivery.ack()
    const turn = this.#deps.turns.take(orgOf(line))
    if (turn) await turn
    if (!this.isOpen) return this.#held.add(line, delivery)
    const worker_id = this.worker_id
    try {
      const { plans, isLast } = await this.#claims.claim(event, worker_id)
      if (isLast) delivery.ack() // W2
      else this.#held.add(line, delivery) // W9
      this.#begin(plans, event, worker_id)
    } catch (error) {
      void this.#failed.settle(delivery, error) // it may wait for long
    }
  }

  /** Follows the facts about this worker's runs and about the worker itself. */
  async #watch(signal: AbortSignal): Promise<void> {
    const after = this.#watched
    const types: EventType[] = ['RunCancelled', 'WorkerLost']
    if (!this.#options.alone) types.push('RunStarted')
    for await (const { events, cursor } of this.#deps.store.subscribe({ after, types, signal })) {
      for (const recorded of events) {
        const { event } = recorded
        if (isOf(recorded, 'RunStarted')) this.#claims.expectAnswer(recorded)
        else if (event.type === 'RunCancelled') this.#executions.cancel(event.run_id)
        else if (event.type === 'WorkerLost' && this.#registration.lost(event.worker_id))
          void this.#beginAgain()
      }
      this.#watched = cursor
      this.#watching.release(cursor)
    }
  }

  #openPauseWatch(): PauseWatch {
    return new PauseWatch({
      head: () => this.#deps.store.head(),
      reached: async (cursor, signal) => {
        if (this.#watched < cursor) await this.#watching.wait(cursor, signal)
      },
      isCutOff: () => this.#options.isCutOff?.() ?? false,
      onSure: () => this.#takeHeld(),
      signal: this.#drained.signal,
    })
  }

  /** Continues with a new id, unless it stops (W5). */
  async #beginAgain(): Promise<void> {
    const { worker_id } = this
    const { signal } = this.#stopping
    const { logger } = this.#deps
    const next = signal.aborted
      ? 'it stops'
      : 'it takes new work under a new id when its heartbeats are stored again'
    logger.warn(`This worker missed its heartbeats and was declared lost; ${next}`, { worker_id })
    const beganAt = clock.monotonic()
    const renewed = this.#registration.renew(signal)
    this.#executions.loseAll()
    await renewed
    if (this.#registration.isLost) return
    const lasted_ms = Math.round(clock.monotonic() - beganAt)
    logger.info('This worker takes new work again, under a new id', { worker_id: this.worker_id, lasted_ms })
    this.#takeHeld()
  }

  /** Claims the child runs for which runs here wait, because this may be the only worker. A lost one claims nothing (W5). */
  async #claimChildren(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#registration.isLost) {
      const parents = this.#executions.awaiting.slice(0, CHILDREN)
      await Promise.all(parents.map((plan) => this.#claimChildrenOf(plan)))
      await delay(CHILDREN_MS, undefined, { signal }).catch(() => {})
    }
  }

  async #claimChildrenOf(parent: RunPlan): Promise<void> {
    try {
      for (const requested of await requestedChildren(this.#deps, parent))
        await this.#claimAhead(this.#lineOf(requested), requested)
    } catch (error) {
      this.#deps.logger.warn('The child runs of a run could not be read', {
        run_id: parent.run_id,
        error: messageOf(error),
      })
    }
  }
}

/** The id to claim for a delivery: of the event or of the run. */
const subjectOf = ({ id, event }: Recorded): string => (event.type === 'RunRequested' ? event.run_id : id)
