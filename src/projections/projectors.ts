import { PermanentError, stackOf } from '../errors.ts'
import type { Cursor } from '../events/event.ts'
import { type Background, keepGoing } from '../loops/keepGoing.ts'
import { Pausable } from '../loops/pausable.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { ReadModels, Version } from '../ports/readModels.ts'
import { allProjections } from './index.ts'
import { nameOf, type Projection } from './projection.ts'
import { Projector, type ProjectorOptions } from './projector.ts'
import { SharedReads } from './sharedReads.ts'
import { watchRestored } from './watchRestored.ts'
import { watchCatalogue } from './watchCatalogue.ts'

/** A read model that has not caught up with the log yet, and the position up to which it is built. */
export interface Building {
  readonly name: string
  readonly builtTo: Cursor
}

/** The positions of the read models, for readers (I2). Names contain the version: `runs@1`. */
export interface Progress {
  readonly building: readonly Building[]
  /** Resolves when the read model has caught up and contains everything up to the cursor, or the signal aborts. */
  reach(name: string, cursor: Cursor, signal?: AbortSignal): Promise<void>
  position(name: string): Cursor
}

/** How far a read model is behind the log. */
export interface Lag {
  readonly name: string
  /** The time for which it has not contained the whole log, milliseconds; 0 while it does. */
  readonly ms: number
  /** The facts that it lacks; null if the store cannot count them. */
  readonly facts: number | null
}

/** The projectors of this process, one for each read model. */
export class Projectors implements Progress {
  readonly #background: Omit<Background, 'signal'>
  readonly #engines: { readonly readModels: ReadModels; readonly store: EventStore }
  readonly #projections: readonly Projection[]
  readonly #projectors: ReadonlyMap<string, Projector>
  readonly #restores: Pick<Parameters<typeof watchRestored>[0], 'lostReports' | 'lookMs'>
  #isRunning = false
  /** Rejects when a thread that fills a read model finds a fact which this build cannot read. */
  readonly #readable = Promise.withResolvers<never>()
  readonly #loops = new Map<string, Pausable>()
  /** Reads of the log for this process. */
  readonly reads: SharedReads

  constructor({
    readModels,
    store,
    logger,
    onGivenUp = () => {},
    projections = allProjections,
    restoredLookMs,
    lostReports,
    ...options
  }: {
    readModels: ReadModels
    store: EventStore
    /** Those of another build, in tests. */
    projections?: readonly Projection[]
    /** Pauses between looks for read models that were restored, milliseconds. */
    restoredLookMs?: number
    /** The read models whose reported positions were restored. */
    lostReports?: () => Promise<readonly string[]>
  } & Omit<Background, 'signal'> &
    Partial<ProjectorOptions>) {
    this.#background = { logger, onGivenUp }
    this.#engines = { readModels, store }
    this.#projections = projections
    this.#restores = { lookMs: restoredLookMs, ...(lostReports && { lostReports }) }
    this.reads = new SharedReads(store)
    this.#readable.promise.catch(() => {}) // the watch over the catalogue reports it
    const onUnreadable = (reason: string) =>
      this.#readable.reject(new PermanentError('internal_server_error', reason))
    this.#projectors = new Map(
      projections.map((projection) => [
        nameOf(projection),
        new Projector(projection, {
          readModels,
          store: this.reads,
          onSkipped: this.logSkipped,
          onUnreadable,
          ...options,
        }),
      ]),
    )
  }

  readonly logSkipped = (name: string, error: unknown): void => {
    this.#background.logger.error(`The read model ${name} continues without a fact`, {
      error: stackOf(error),
    })
  }

  /** Names all read models with their versions: two processes with the same set do the same work. */
  get names(): readonly string[] {
    return [...this.#projectors.keys()]
  }

  get building(): readonly Building[] {
    return [...this.#projectors.values()].filter(({ hasCaughtUp }) => !hasCaughtUp)
  }

  /** The lags of the read models; none while another node projects. */
  async lags(): Promise<readonly Lag[]> {
    if (!this.#isRunning) return []
    const { store } = this.#engines
    const head = await store.head()
    return [...this.#projectors.values()].map((projector) => ({
      name: projector.name,
      ms: projector.lagMs(head),
      facts: factsBetween(store, projector.builtTo, head),
    }))
  }

  /** Whether a stored version came before one of this build that has caught up with the log. */
  replaces({ name, version }: Version): boolean {
    const own = this.#projections.find((projection) => projection.name === name)
    return (
      own !== undefined && version < own.version && this.#projectors.get(nameOf(own))?.hasCaughtUp === true
    )
  }

  /** Keeps every read model at the end of the log until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const background = { ...this.#background, signal }
    this.#isRunning = true
    const running = [...this.#projectors].map(([name, projector]) => {
      const loop = new Pausable()
      this.#loops.set(name, loop)
      const onBegun = this.reads.expect()
      const run = (until: AbortSignal) =>
        loop.run((part) => projector.run(part, onBegun).finally(onBegun), until)
      return keepGoing(`The projector of ${name}`, run, background)
    })
    const restored = {
      ...this.#engines,
      projectors: [...this.#projectors.values()],
      logger: background.logger,
    }
    const again = (name: string) => this.pausing(name, async () => {})
    const watchRestores = (until: AbortSignal) =>
      watchRestored({ ...restored, ...this.#restores, again }, until)
    running.push(keepGoing('The watch over restored read models', watchRestores, background))
    const onBegun = this.reads.expect()
    const watch = (until: AbortSignal) => this.#watch(until, onBegun).finally(onBegun)
    running.push(keepGoing('The watch over the catalogue', watch, background))
    await Promise.all(running)
    this.#isRunning = false
  }

  /**
   * The watch reads the whole log, for which threads that fill read models need the processors first. They report the first
   * fact of an unknown type that they pass.
   */
  async #watch(signal: AbortSignal, onBegun: () => void): Promise<void> {
    const apart = setImmediate(onBegun)
    const filled = Promise.all([...this.#projectors.values()].map((projector) => projector.filled))
    await Promise.race([filled, this.#readable.promise])
    clearImmediate(apart)
    const { readModels } = this.#engines
    if (!signal.aborted) await watchCatalogue({ readModels, store: this.reads, onBegun }, signal)
  }

  /** Does some work while the projector of a read model does not run. Readers of newer positions wait meanwhile. */
  async pausing(name: string, work: (builtTo: Cursor) => Promise<void>): Promise<void> {
    const [loop, projector] = [this.#loops.get(name), this.#projectors.get(name)]
    if (!loop || !projector) throw new Error(`Expected a read model with a projector, got ${name}`)
    await loop.during(() => work(projector.builtTo))
  }

  projectionOf(name: string): Projection | undefined {
    return this.#projections.find((projection) => nameOf(projection) === name)
  }

  async reach(name: string, cursor: Cursor, signal?: AbortSignal): Promise<void> {
    await this.#projectors.get(name)?.reach(cursor, signal)
  }

  position(name: string): Cursor {
    return this.#projectors.get(name)?.position ?? ''
  }

  /** Writes the events collected so far, because a reader waits. */
  hurry(name: string): void {
    this.#projectors.get(name)?.hurry()
  }
}

/** The position of a read model may be beyond a head that was read before it. */
const factsBetween = (store: EventStore, builtTo: Cursor, head: Cursor): number | null => {
  const facts = store.countBetween(builtTo, head)
  return facts === null ? null : Math.max(0, facts)
}
