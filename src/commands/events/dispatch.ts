import { counted } from '../../text/counted.ts'
import { clock } from '../../clock.ts'
import { LostBlob } from '../../content/lostBlob.ts'
import { openingOf } from '../../domain/stream.ts'
import { AppError } from '../../errors.ts'
import { actorOf } from '../../events/actor.ts'
import { type EnvCause, envIdOf, type Recorded } from '../../events/event.ts'
import type { EventOf } from '../../events/index.ts'
import { isControl, REPLAY } from '../../events/eventType.ts'
import { payloadOf } from '../../events/payload.ts'
import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import { slices } from '../../loops/slices.ts'
import type { CommandDeps } from '../deps.ts'
import { cancelRun } from '../runs/cancelRun.ts'
import { findRun } from '../runs/findRun.ts'
import { Part, type PlannedStarts, planRuns } from './planRuns.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'views' | 'payloads'>
type Published = Recorded<EventOf<'EventPublished'>>

/** The result of a claim. */
export interface Claimed {
  /** The runs to execute. Some may have begun already: they are those that an earlier claim without a reply has stored. */
  readonly plans: readonly RunPlan[]
  /** Whether nothing is left to claim. */
  readonly isLast: boolean
}

/** Plans between two looks at the time that is left in a turn. */
const PLANS_PER_LOOK = 16

/**
 * The dispatch of a published event: claims the runs of its handlers, or cancels the run that `svc:cancel` names (SPEC.md,
 * Publishing and handling). Many runs are claimed in parts. Invariants:
 * X1: the facts of the stream contain what was claimed, so any worker can continue, also after a crash (I3).
 * X2: the event counts as dispatched from the last part on. Until then, it is delivered again.
 * X3: the handlers are those that were deployed before its first part here.
 */
export class Dispatch {
  readonly #deps: Deps
  readonly #published: Published
  readonly #maxRunDepth: number
  #planned: PlannedStarts | null | undefined
  /** The number of functions whose runs are claimed. */
  #done = 0
  /** The ids of runs that were claimed elsewhere, as far as they are known. */
  #claimed: ReadonlySet<string> = new Set()

  /** An event deeper than `maxRunDepth` starts no runs. */
  constructor(
    deps: Deps,
    { published, maxRunDepth = Infinity }: { published: Published; maxRunDepth?: number },
  ) {
    this.#deps = deps
    this.#published = published
    this.#maxRunDepth = maxRunDepth
  }

  /**
   * Claims the next part of the runs for a worker. Resolves with null if the event was dispatched before. After it has rejected,
   * only a new dispatch finds what was stored.
   */
  async claim(worker_id: string): Promise<Claimed | null> {
    if (this.#planned === undefined) this.#planned = await this.#plan()
    if (!this.#planned) return null
    const { event_id, stream_id } = this.#published.event
    const { plans, done } = await this.#nextPart(this.#planned)
    const isLast = done === this.#planned.functions.length
    const claim = { event_id, plans, worker_id, now: clock.iso() }
    const { events } = await this.#deps.aggregates.streams.handle(
      streamOf.stream(stream_id),
      isLast
        ? { ...claim, type: 'DispatchEvent', stream_id, unread: unreadOf(event_id, this.#planned.unread) }
        : { ...claim, type: 'ClaimPart' },
      this.#cause,
      { opening: openingOf(this.#published), known: this.#published.revision },
    )
    this.#done = done
    if (events.length === plans.length + (isLast ? 1 : 0)) return { plans, isLast }
    const { claimed, own } = await this.#claims(worker_id) // some runs were claimed before
    if (isLast) return events.length > 0 ? { plans: own, isLast } : null
    if (!claimed) return null
    this.#claimed = claimed
    return { plans: own, isLast }
  }

  /** The runs start on behalf of the publisher, also if a worker starts them. */
  get #cause(): EnvCause {
    const { event, metadata } = this.#published
    const { correlation_id } = metadata
    const env_id = envIdOf(this.#published)
    return { env_id, correlation_id, causation_id: event.event_id, ...actorOf(metadata) }
  }

  /** Resolves with the functions to start; null if a cancellation was dispatched before. */
  async #plan(): Promise<PlannedStarts | null> {
    const { views } = this.#deps
    const { event, metadata, revision, cursor } = this.#published
    const env_id = envIdOf(this.#published)
    await views.directory.reach(cursor) // every handler that was deployed before the event is known
    const data = isControl(event.event_type) ? await this.#controlData() : undefined
    const replayed = event.event_type === REPLAY ? await findRun(this.#deps, runIdIn(data), env_id) : null
    const { traceparent } = metadata
    const planned = planRuns(
      event,
      data,
      { env_id, revision, traceparent },
      { directory: views.directory, replayed },
    )
    if (planned.kind === 'cancel') {
      if (await this.#isDispatched()) return null // it was carried out
      await cancelRun(this.#deps, planned.run_id, this.#cause)
      return NOTHING
    }
    const isTooDeep = (event.depth ?? 0) > this.#maxRunDepth // the limit was lowered since the event was published
    return isTooDeep ? NOTHING : planned
  }

  /**
   * The data of a control event. If it is lost, the event is abandoned and listed, and the operator repeats it when the data is
   * restored: events that wait would fill the window of the worker (decision 0072).
   */
  async #controlData(): Promise<unknown> {
    const { event } = this.#published
    try {
      return await this.#deps.payloads.loadLoosely(payloadOf('event_data', event))
    } catch (error) {
      if (!(error instanceof LostBlob)) throw error
      throw new AppError('internal_server_error', error.message, { cause: error })
    }
  }

  /** Plans the runs of the next functions, in slices. `done`: the number of functions up to the last of them. */
  async #nextPart({
    functions,
    planOf,
  }: PlannedStarts): Promise<{ plans: readonly RunPlan[]; done: number }> {
    const part = new Part(functions.length)
    let done = this.#done
    for (const deployed of functions.slice(done)) {
      const wait = (done + 1) % PLANS_PER_LOOK === 0 ? slices.take() : null
      if (wait) await wait
      const plan = planOf(deployed)
      if (!this.#claimed.has(plan.run_id) && !part.add(plan)) break
      done++
    }
    return { plans: part.plans, done }
  }

  /** The claimed runs of the event, undefined if it was dispatched, and those that the worker claimed and that have not ended. */
  #claims(worker_id: string): Promise<{ claimed: ReadonlySet<string> | undefined; own: RunPlan[] }> {
    const { event_id, stream_id } = this.#published.event
    const { streams } = this.#deps.aggregates
    return streams.read(streamOf.stream(stream_id), ({ undispatched, runs }) => {
      const own: RunPlan[] = []
      for (const run of runs.values())
        if (run.status === 'running' && run.workerId === worker_id && run.plan.event_id === event_id)
          own.push(run.plan)
      return { claimed: undispatched.has(event_id) ? new Set(undispatched.get(event_id)) : undefined, own }
    })
  }

  /** Whether the event was dispatched before. A node that is behind does not know the event, and answers false. */
  #isDispatched(): Promise<boolean> {
    const { event, revision } = this.#published
    return this.#deps.aggregates.streams.read(
      streamOf.stream(event.stream_id),
      ({ undispatched }, last) => last >= revision && !undispatched.has(event.event_id),
    )
  }
}

const NOTHING: PlannedStarts = {
  kind: 'start',
  functions: [],
  unread: [],
  planOf: () => {
    throw new Error('Expected a function, got none')
  },
}

/** The event is listed for the operator, who repeats it for these projects when their functions can be read. */
const unreadOf = (event_id: string, unread_projects: readonly string[]) =>
  unread_projects.length === 0
    ? undefined
    : {
        unread_projects,
        error: {
          code: 'internal_server_error',
          message: `Event ${event_id} could not be dispatched to ${counted(unread_projects.length, 'project')}, because the lists of functions of their builds cannot be read`,
        },
      }

const runIdIn = (data: unknown): unknown =>
  typeof data === 'object' && data !== null && 'run_id' in data ? data.run_id : undefined
