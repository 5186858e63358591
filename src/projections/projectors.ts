import type { Cursor } from '../events/event.ts'
import { type Background, keepGoing } from '../loops/keepGoing.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { ReadModels } from '../ports/readModels.ts'
import { allProjections } from './index.ts'
import { nameOf } from './projection.ts'
import { Projector, type ProjectorOptions } from './projector.ts'
import { watchCatalogue } from './watchCatalogue.ts'

/** The positions of the read models, for readers (I2). Names contain the version: `runs@1`. */
export interface Progress {
  /** Resolves when the read model is live and contains everything up to the cursor, or the signal aborts. */
  reach(name: string, cursor: Cursor, signal?: AbortSignal): Promise<void>
  position(name: string): Cursor
}

/** The projectors of this process, one for each read model. */
export class Projectors implements Progress {
  readonly #background: Omit<Background, 'signal'>
  readonly #engines: { readonly readModels: ReadModels; readonly store: EventStore }
  readonly #projectors: ReadonlyMap<string, Projector>

  constructor({
    readModels,
    store,
    logger,
    onGivenUp = () => {},
    ...options
  }: { readModels: ReadModels; store: EventStore } & Omit<Background, 'signal'> & Partial<ProjectorOptions>) {
    this.#background = { logger, onGivenUp }
    this.#engines = { readModels, store }
    this.#projectors = new Map(
      allProjections.map((projection) => [
        nameOf(projection),
        new Projector(projection, { readModels, store, ...options }),
      ]),
    )
  }

  /** Names all read models with their versions: two processes with the same set do the same work. */
  get names(): readonly string[] {
    return [...this.#projectors.keys()]
  }

  /** Keeps every read model at the end of the log until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const background = { ...this.#background, signal }
    const running = [...this.#projectors].map(([name, projector]) =>
      keepGoing(`The projector of ${name}`, (until) => projector.run(until), background),
    )
    running.push(
      keepGoing('The watch over the catalogue', (until) => watchCatalogue(this.#engines, until), background),
    )
    await Promise.all(running)
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
