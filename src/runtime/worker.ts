import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { BoundedMap } from '../boundedMap.ts'
import { clock } from '../clock.ts'
import type { Commands } from '../commands/index.ts'
import { AppError, isAppError, messageOf } from '../errors.ts'
import type { Recorded } from '../events/event.ts'
import type { EventOf } from '../events/index.ts'
import type { RunError, RunPlan } from '../events/run.ts'
import { streamOf } from '../events/streams.ts'
import { newId } from '../ids.ts'
import { keepGoing } from '../keepGoing.ts'
import type { Logger } from '../log.ts'
import type { Payloads } from '../payloads.ts'
import type { Delivery, EventStore } from '../ports/eventStore.ts'
import type { Views } from '../projections/views.ts'
import type { Keyring } from '../secrets.ts'
import { dispatch, REPLAY } from '../sagas/dispatch.ts'
import { inputOf } from './inputs.ts'
import type { Outcome, Runtime } from './runtime.ts'
import { serveHostCall } from './serveHostCall.ts'

interface Deps {
  readonly store: EventStore
  readonly commands: Commands
  readonly views: Pick<Views, 'directory' | 'runs' | 'builds' | 'reach'>
  readonly payloads: Payloads
  readonly keyring: Keyring
  readonly runtime: Runtime
  readonly log: Logger
}

export interface WorkerOptions {
  /** Runs under way at a time; beyond, events wait in the log. */
  readonly maxRuns: number
  /** How long a run may take when its function does not say, milliseconds. */
  readonly runTimeoutMs: number
}

/** What a worker in the same process offers to whoever appends what it would claim next. */
export interface Claimer {
  readonly worker_id: string
  /** The runs of an event's handlers, for the append that publishes it; null when the worker is full. */
  plansFor(
    event: { event_id: string; stream_id: string; event_type: string },
    at: { env_id: string; revision: number },
  ): Promise<readonly RunPlan[] | null>
  readonly hasRoom: boolean
  /** Executes a run whose `RunStarted` was appended in the worker's name. `carrier` holds its input. */
  execute(plan: RunPlan, carrier: Recorded): void
}

/** Deliveries a worker holds that it has not claimed yet. */
const IN_FLIGHT = 256

/**
 * Turns events into runs. Invariants:
 * W1: a run is executed by whoever appended its `RunStarted`, and by nobody else (I3).
 * W2: an event is acknowledged to the group only after its claim is durable, here or elsewhere.
 * W3: every claimed run ends: its terminal fact is tried until it is stored or the worker dies.
 */
export class Worker implements Claimer {
  readonly worker_id = newId()
  readonly #deps: Deps
  readonly #options: WorkerOptions
  readonly #cancels = new Map<string, AbortController>()
  readonly #running = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  /** Events and requests whose delivery has nothing left to claim. */
  readonly #claimedAtBirth = new BoundedMap<string, true>(4096)
  #awaitingRuns = 0
  #roomMade: (() => void) | undefined

  constructor(deps: Deps, options: WorkerOptions) {
    this.#deps = deps
    this.#options = options
  }

  async start(): Promise<void> {
    const { commands, store, log } = this.#deps
    const node = `${hostname()}/${process.pid}`
    await commands.workers.handle(
      streamOf.worker(this.worker_id),
      { type: 'StartWorker', worker_id: this.worker_id, node, now: clock.iso() },
      { correlation_id: this.worker_id },
    )
    const signal = this.#stopping.signal
    const head = await store.head()
    void keepGoing('The worker', (until) => this.#consume(until), { signal, log })
    void keepGoing('Cancelling', (until) => this.#watchCancels(head, until), { signal, log })
  }

  get hasRoom(): boolean {
    return !this.#stopping.signal.aborted && this.#running.size - this.#awaitingRuns < this.#options.maxRuns
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

  /** Takes no more, waits for what runs, then ends what is left. */
  async stop({ drainMs }: { drainMs: number }): Promise<void> {
    this.#stopping.abort()
    const drained = Promise.allSettled(this.#running)
    await Promise.race([drained, delay(drainMs, undefined, { ref: false })])
    await this.#deps.runtime.close()
    await Promise.race([Promise.allSettled(this.#running), delay(2000, undefined, { ref: false })])
    await this.#deps.commands.workers.handle(
      streamOf.worker(this.worker_id),
      { type: 'StopWorker', worker_id: this.worker_id, now: clock.iso() },
      { correlation_id: this.worker_id },
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
    if (this.#claimedAtBirth.get(event.id)) return delivery.ack()
    try {
      const claimed =
        event.event.type === 'EventPublished'
          ? await this.#dispatch(event as Recorded<EventOf<'EventPublished'>>)
          : await this.#claim(event as Recorded<EventOf<'RunRequested'>>)
      delivery.ack() // W2
      for (const plan of claimed) this.#start(plan, event)
    } catch (error) {
      this.#deps.log.warn('An event could not be claimed and is tried again', {
        event: event.id,
        error: messageOf(error),
      })
      await delay(200, undefined, { ref: false })
      delivery.retry()
    }
  }

  async #dispatch(recorded: Recorded<EventOf<'EventPublished'>>): Promise<readonly RunPlan[]> {
    const { commands, views, payloads } = this.#deps
    const { event, metadata, revision, cursor } = recorded
    const env_id = metadata.env_id ?? ''
    const { event_id, stream_id } = event
    await views.directory.reach(cursor) // a handler deployed before the event is known
    const steers = event.event_type.startsWith('svc:')
    const data = steers
      ? await payloads.load({
          value: event.event_data,
          ...(event.event_data_ref && { ref: event.event_data_ref }),
        })
      : undefined
    const replayed = event.event_type === REPLAY ? await this.#runOf(env_id, data) : undefined
    const found = dispatch(
      event,
      data,
      { env_id, revision },
      { directory: views.directory, replayed: replayed ?? null },
    )
    const cause = { env_id, correlation_id: metadata.correlation_id, causation_id: event_id }
    const now = clock.iso()
    if (found.kind === 'cancel') await this.#cancel(env_id, found.run_id, cause)
    const { events } = await commands.streams.handle(
      streamOf.stream(stream_id),
      {
        type: 'DispatchEvent',
        stream_id,
        event_id,
        plans: found.kind === 'start' ? found.plans : [],
        worker_id: this.worker_id,
        now,
      },
      cause,
    )
    return found.kind === 'start' && events.length > 0 ? found.plans : [] // W1
  }

  async #claim({
    event,
    metadata,
    revision,
  }: Recorded<EventOf<'RunRequested'>>): Promise<readonly RunPlan[]> {
    const { type: _, input: __, ...plan } = event
    const { events } = await this.#deps.commands.streams.handle(
      streamOf.stream(event.stream_id),
      { type: 'ClaimRun', run_id: event.run_id, worker_id: this.worker_id, now: clock.iso() },
      { ...metadata, causation_id: event.run_id },
    )
    return events.length > 0
      ? [{ ...plan, input_at: plan.input_at ?? { stream_id: plan.stream_id, revision } }]
      : [] // W1
  }

  execute(plan: RunPlan, carrier: Recorded): void {
    this.#claimedAtBirth.set(carrier.id, true)
    this.#start(plan, carrier)
  }

  #start(plan: RunPlan, carrier: Recorded): void {
    const cancel = new AbortController()
    this.#cancels.set(plan.run_id, cancel)
    const running = this.#run(plan, carrier, cancel.signal).finally(() => {
      this.#cancels.delete(plan.run_id)
      this.#running.delete(running)
      this.#roomMade?.()
    })
    this.#running.add(running)
  }

  async #run(plan: RunPlan, carrier: Recorded, signal: AbortSignal): Promise<void> {
    const env_id = carrier.metadata.env_id ?? ''
    const cause = { env_id, correlation_id: carrier.metadata.correlation_id, causation_id: plan.run_id }
    let outcome: Outcome
    try {
      outcome = await this.#invoke(plan, carrier, signal)
    } catch (error) {
      outcome = { status: 'failed', error: failureOf(error) }
    }
    for (let pause = 50; ; pause = Math.min(pause * 2, 2000)) {
      try {
        await this.#end(plan, outcome, cause)
        return
      } catch (error) {
        if (isAppError(error, 'bad_request') && outcome.status === 'succeeded') {
          outcome = { status: 'failed', error: { code: 'result_not_serializable', message: error.message } }
          continue
        }
        this.#deps.log.warn('The end of a run could not be stored and is tried again', {
          run_id: plan.run_id,
          error: messageOf(error),
        })
        await delay(pause, undefined, { ref: false }) // W3
      }
    }
  }

  async #invoke(plan: RunPlan, carrier: Recorded, signal: AbortSignal): Promise<Outcome> {
    const { store, commands, views, payloads, keyring, runtime, log } = this.#deps
    const env_id = carrier.metadata.env_id ?? ''
    const hash = await hashOf(views, env_id, plan)
    const under = { plan, env_id, correlation_id: carrier.metadata.correlation_id, signal }
    const deps = { store, commands, directory: views.directory, payloads }
    return runtime.invoke({
      build: { env_id, build_id: plan.build_id, hash },
      run: {
        run_id: plan.run_id,
        stream_id: plan.stream_id,
        run_type: plan.run_type,
        attempt: plan.attempt,
        event_id: plan.event_id ?? null,
        origin_run_id: plan.origin_run_id ?? null,
        project_id: plan.project_id,
        project_name: plan.project_name,
      },
      target: plan.target,
      input: await inputOf(plan, carrier, { store, payloads, keyring }),
      timeoutMs: plan.timeout ?? this.#options.runTimeoutMs,
      signal,
      onHostCall: (call) =>
        call.op === 'run'
          ? this.#awaiting(serveHostCall(deps, under, call))
          : serveHostCall(deps, under, call),
      onLog: ({ source, text }) => log.info(text, { run_id: plan.run_id, source }),
    })
  }

  /** A run that waits for a child run takes no place: its child may need it. */
  async #awaiting(ended: Promise<unknown>): Promise<unknown> {
    this.#awaitingRuns++
    this.#roomMade?.()
    try {
      return await ended
    } finally {
      this.#awaitingRuns--
    }
  }

  async #end(
    plan: RunPlan,
    outcome: Outcome,
    cause: Parameters<Commands['streams']['handle']>[2],
  ): Promise<void> {
    const { commands, payloads } = this.#deps
    const { run_id } = plan
    const now = clock.iso()
    const command =
      outcome.status === 'succeeded'
        ? ({ type: 'SucceedRun', run_id, result: await payloads.keep(outcome.result ?? null), now } as const)
        : ({
            type: 'FailRun',
            run_id,
            error: outcome.error,
            worker_id: this.worker_id,
            now,
            nowMs: clock.now(),
          } as const)
    await commands.streams.handle(streamOf.stream(plan.stream_id), command, cause)
  }

  /** Ends a run of the environment as cancelled, whatever its state; one that is unknown or over stays as it is (I4, I7). */
  async #cancel(
    env_id: string,
    run_id: string,
    cause: Parameters<Commands['streams']['handle']>[2],
  ): Promise<void> {
    const run = await this.#runOf(env_id, { run_id })
    if (!run) return
    await this.#deps.commands.streams.handle(
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

  async #watchCancels(after: string, signal: AbortSignal): Promise<void> {
    for await (const { events } of this.#deps.store.subscribe({ after, types: ['RunCancelled'], signal })) {
      for (const { event } of events)
        if (event.type === 'RunCancelled') this.#cancels.get(event.run_id)?.abort()
    }
  }
}

/** The bytes to run: a plan names the build, the directory knows the hash of those in use. */
const hashOf = async (
  views: Pick<Views, 'directory' | 'builds'>,
  env_id: string,
  plan: RunPlan,
): Promise<string> => {
  const project = views.directory.project(env_id, plan.project_id)
  for (const build of [project?.deployed, project?.live])
    if (build?.build_id === plan.build_id) return build.hash
  const build = await views.builds.get(plan.build_id)
  if (build?.env_id !== env_id) throw new AppError('not_found', `Build ${plan.build_id} no longer exists`)
  return build.hash
}

const failureOf = (error: unknown): RunError =>
  isAppError(error, 'not_found')
    ? { code: 'function_not_found', message: error.message }
    : { code: 'internal_error', message: messageOf(error) }
