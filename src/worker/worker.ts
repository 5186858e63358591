import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { BoundedMap } from '../boundedMap.ts'
import { clock } from '../clock.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import { recordedOf } from '../domain/recorded.ts'
import { openingOf } from '../domain/stream.ts'
import { messageOf } from '../errors.ts'
import type { Recorded } from '../events/event.ts'
import type { EventOf, EventType } from '../events/index.ts'
import { payloadOf } from '../events/payload.ts'
import type { RunPlan } from '../events/run.ts'
import { streamOf } from '../events/streams.ts'
import { newId } from '../ids.ts'
import { keepGoing } from '../loops/keepGoing.ts'
import type { Delivery } from '../ports/eventStore.ts'
import { isControl, REPLAY } from '../commands/controlEvents.ts'
import { dispatch } from '../commands/dispatch.ts'
import { type ExecutionDeps, Executions } from './executions.ts'
import { wantRun } from '../commands/wantRun.ts'
import type { Claimer, WantedRun } from '../ports/claimer.ts'

export interface WorkerOptions {
  /** Runs that execute at the same time, by default `MAX_CONCURRENT_RUNS`. */
  readonly maxConcurrentRuns?: number
  /** How long a run may take when its function has no timeout of its own, milliseconds. */
  readonly runTimeoutMs: number
  /** There is no other worker, so nothing is delivered to one. */
  readonly alone?: boolean
  /** Told each id under which this worker claims, so that signs of life are given for it. */
  readonly onIdentity?: (worker_id: string) => void
}

/** Runs that one worker executes at the same time. Further events wait in the log. */
const MAX_CONCURRENT_RUNS = 2000

/** How long running runs may continue when the worker stops, milliseconds. */
const RUN_DRAIN_MS = 20_000

/** An append is answered within this time, or its answer is lost, milliseconds. */
const ANSWERED_MS = 6000

/** Deliveries a worker holds that it has not claimed yet. */
const IN_FLIGHT = 256

/**
 * Turns events into runs. Invariants:
 * W1: a run is executed by whoever appended its `RunStarted`, and by nobody else (I3).
 * W2: an event is acknowledged to the group only after its claim is durable, here or elsewhere.
 * W3: every claimed run ends: its terminal fact is tried until it is stored or the worker dies.
 * W4: what this worker claimed by an append whose answer it never got, it learns from the log: when the event is
 * delivered to it, and when it is delivered to another one.
 * W5: a worker that was given up for lost (it was paused, say) goes on under a new id; what it claimed under the
 * old one has ended or is ended by it.
 */
export class Worker implements Claimer {
  readonly #deps: ExecutionDeps
  readonly #options: WorkerOptions
  readonly #executions: Executions
  readonly #stopping = new AbortController()
  /** Events and requested runs, by id, whose delivery has nothing left to claim. */
  readonly #claimedAtBirth = new BoundedMap<string, true>(4096)
  /** Those of which this is not known yet. */
  readonly #births = new Map<string, Promise<void>>()
  #worker_id = newId()
  #roomMade: (() => void) | undefined

  constructor(deps: ExecutionDeps, options: WorkerOptions) {
    this.#deps = deps
    this.#options = options
    this.#executions = new Executions(deps, {
      runTimeoutMs: options.runTimeoutMs,
      changed: () => this.#roomMade?.(),
    })
  }

  get worker_id(): string {
    return this.#worker_id
  }

  async start(): Promise<void> {
    const { store, logger } = this.#deps
    const signal = this.#stopping.signal
    const head = await store.head()
    await this.#register()
    void keepGoing('The worker', (until) => this.#consume(until), { signal, logger })
    void keepGoing('Cancelling', (until) => this.#watch(head, until), { signal, logger })
  }

  get hasRoom(): boolean {
    return (
      !this.#stopping.signal.aborted &&
      this.#executions.taken < (this.#options.maxConcurrentRuns ?? MAX_CONCURRENT_RUNS)
    )
  }

  async plansFor(
    event: { event_id: string; stream_id: string; event_type: string },
    { env_id, revision }: { env_id: string; revision: number },
  ): Promise<readonly RunPlan[] | null> {
    const { store, views } = this.#deps
    await views.directory.reach(await store.head()) // a handler deployed before the event is known
    if (!this.hasRoom) return null
    const found = dispatch(event, undefined, { env_id, revision }, { directory: views.directory })
    return found.kind === 'start' ? found.plans : null
  }

  async take(run: WantedRun): Promise<void> {
    const { plan, now, cause } = run
    const worker_id = this.#worker_id
    const handled = await this.claiming(plan.run_id, () => wantRun(this.#deps.aggregates, run, worker_id))
    if (handled.events.length === 0) return
    const stream = streamOf.stream(plan.stream_id)
    this.execute([plan], recordedOf(handled, 'RunRequested', { stream, at: now, metadata: cause }), worker_id)
  }

  async claiming<T>(id: string, append: () => Promise<T>): Promise<T> {
    const born = Promise.withResolvers<void>()
    this.#births.set(id, born.promise)
    try {
      return await append()
    } finally {
      this.#births.delete(id)
      setImmediate(born.resolve) // when the caller has had its `execute`
    }
  }

  execute(plans: readonly RunPlan[], carrier: Recorded, worker_id: string): void {
    this.#claimedAtBirth.set(subjectOf(carrier), true)
    for (const plan of plans) this.#executions.begin(plan, carrier, worker_id)
  }

  /** Takes no more, waits for what runs, then ends what is left. */
  async stop({ drainMs }: { drainMs: number } = { drainMs: RUN_DRAIN_MS }): Promise<void> {
    this.#stopping.abort()
    await this.#executions.drain(drainMs)
    await this.#deps.runtime.close()
    await this.#executions.drain(2000)
    await this.#deps.aggregates.workers.handle(
      streamOf.worker(this.worker_id),
      { type: 'StopWorker', worker_id: this.worker_id, now: clock.iso() },
      { correlation_id: this.worker_id },
    )
  }

  async #register(): Promise<void> {
    const worker_id = this.#worker_id
    this.#options.onIdentity?.(worker_id)
    await this.#deps.aggregates.workers.handle(
      streamOf.worker(worker_id),
      { type: 'StartWorker', worker_id, node: `${hostname()}/${process.pid}`, now: clock.iso() },
      { correlation_id: worker_id },
    )
  }

  async #consume(signal: AbortSignal): Promise<void> {
    const types = ['EventPublished', 'RunRequested'] as const
    for await (const delivery of this.#deps.store.consume('workers', {
      types,
      inFlight: IN_FLIGHT,
      signal,
    })) {
      while (!this.hasRoom && !signal.aborted) {
        await new Promise<void>((resolve) => (this.#roomMade = resolve))
      }
      if (signal.aborted) return // stopping: what was not acknowledged goes to another worker, or to the next start
      void this.#take(delivery)
    }
  }

  async #take(delivery: Delivery): Promise<void> {
    const { event } = delivery
    const subject = subjectOf(event)
    await this.#births.get(subject)
    if (this.#claimedAtBirth.get(subject)) return delivery.ack()
    const worker_id = this.#worker_id
    try {
      const claimed =
        event.event.type === 'EventPublished'
          ? await this.#dispatch(event as Recorded<EventOf<'EventPublished'>>, worker_id)
          : await this.#claim(event as Recorded<EventOf<'RunRequested'>>, worker_id)
      delivery.ack() // W2
      for (const plan of claimed) this.#executions.begin(plan, event, worker_id)
    } catch (error) {
      this.#deps.logger.warn('An event could not be claimed and is tried again', {
        event: event.id,
        error: messageOf(error),
      })
      await delay(200, undefined, { ref: false })
      delivery.retry()
    }
  }

  async #dispatch(
    recorded: Recorded<EventOf<'EventPublished'>>,
    worker_id: string,
  ): Promise<readonly RunPlan[]> {
    const { aggregates, views, payloads } = this.#deps
    const { event, metadata, revision, cursor } = recorded
    const env_id = metadata.env_id ?? ''
    const { event_id, stream_id } = event
    await views.directory.reach(cursor) // a handler deployed before the event is known
    const steers = isControl(event.event_type)
    const data = steers ? await payloads.load(payloadOf('event_data', event)) : undefined
    const replayed = event.event_type === REPLAY ? await this.#runOf(env_id, data) : undefined
    const found = dispatch(
      event,
      data,
      { env_id, revision },
      { directory: views.directory, replayed: replayed ?? null },
    )
    const cause = { env_id, correlation_id: metadata.correlation_id, causation_id: event_id }
    if (found.kind === 'cancel') await this.#cancel(env_id, found.run_id, cause)
    const plans = found.kind === 'start' ? found.plans : []
    const { events } = await aggregates.streams.handle(
      streamOf.stream(stream_id),
      { type: 'DispatchEvent', stream_id, event_id, plans, worker_id, now: clock.iso() },
      cause,
      { opening: openingOf(recorded), known: revision },
    )
    return events.length > 0 ? plans : this.#claimedBefore(stream_id, (plan) => plan.event_id === event_id)
  }

  async #claim(recorded: Recorded<EventOf<'RunRequested'>>, worker_id: string): Promise<readonly RunPlan[]> {
    const { event, metadata, revision } = recorded
    const { type: _, input: __, ...plan } = event
    const { stream_id, run_id } = plan
    const { events } = await this.#deps.aggregates.streams.handle(
      streamOf.stream(stream_id),
      { type: 'ClaimRun', run_id, worker_id, now: clock.iso() },
      { ...metadata, causation_id: run_id },
      { opening: openingOf(recorded), known: revision },
    )
    return events.length > 0
      ? [{ ...plan, input_at: plan.input_at ?? { stream_id, revision } }]
      : this.#claimedBefore(stream_id, (claimed) => claimed.run_id === run_id)
  }

  /** W4: a claim of this worker, before its answer came or after it was given up. */
  #expectAnswer(started: Recorded<EventOf<'RunStarted'>>): void {
    const { run_id, stream_id, worker_id } = started.event
    const isOpen = () => worker_id === this.#worker_id && !this.#executions.has(run_id)
    const look = async () => {
      if (!isOpen()) return
      try {
        const claimed = await this.#claimedBefore(stream_id, (plan) => plan.run_id === run_id)
        for (const plan of claimed) this.#executions.begin(plan, started, worker_id)
      } catch {
        later() // the store is away: then the answer may still come
      }
    }
    const later = () => setTimeout(() => void look(), ANSWERED_MS).unref()
    if (isOpen()) later()
  }

  /** Runs that this worker claimed by an append whose answer it never got (W4). */
  async #claimedBefore(stream_id: string, belongs: (plan: RunPlan) => boolean): Promise<readonly RunPlan[]> {
    return this.#deps.aggregates.streams.read(streamOf.stream(stream_id), ({ runs }) =>
      [...runs.values()].flatMap((run) =>
        run.status === 'running' && run.workerId === this.#worker_id && belongs(run.plan) ? [run.plan] : [],
      ),
    )
  }

  /** Ends a run of the environment as cancelled, whatever its state; one that is unknown or over stays as it is (I4, I7). */
  async #cancel(
    env_id: string,
    run_id: string,
    cause: Parameters<Aggregates['streams']['handle']>[2],
  ): Promise<void> {
    const run = await this.#runOf(env_id, { run_id })
    if (!run) return
    await this.#deps.aggregates.streams.handle(
      streamOf.stream(run.stream_id),
      { type: 'CancelRun', run_id, now: clock.iso() },
      cause,
    )
  }

  async #runOf(env_id: string, data: unknown) {
    const { views, store } = this.#deps
    const run_id = (data as { run_id?: unknown } | null)?.run_id
    if (typeof run_id !== 'string') return null
    await views.reach(await store.head())
    const run = await views.runs.get(run_id)
    return run?.env_id === env_id ? run : null
  }

  /** What the log says about this worker's runs and about itself. */
  async #watch(after: string, signal: AbortSignal): Promise<void> {
    const types: EventType[] = ['RunCancelled', 'WorkerLost']
    if (!this.#options.alone) types.push('RunStarted')
    for await (const { events } of this.#deps.store.subscribe({ after, types, signal })) {
      for (const recorded of events) {
        const { event } = recorded
        if (event.type === 'RunStarted') this.#expectAnswer(recorded as Recorded<EventOf<'RunStarted'>>)
        else if (event.type === 'RunCancelled') this.#executions.cancel(event.run_id)
        else if (event.type === 'WorkerLost' && event.worker_id === this.#worker_id) await this.#begin()
      }
    }
  }

  /** W5: this worker was believed dead. */
  async #begin(): Promise<void> {
    const { logger } = this.#deps
    logger.warn('This worker was silent for too long and was given up; it goes on under a new id', {
      worker_id: this.#worker_id,
    })
    this.#worker_id = newId()
    this.#executions.loseAll()
    await this.#register()
  }
}

/** What a delivery asks to be claimed: the event, or the run. */
const subjectOf = ({ id, event }: Recorded): string => (event.type === 'RunRequested' ? event.run_id : id)
