import { type Feed, feedOfAll, feedOfStream } from '../feed.ts'
import { type Filter, filterOf } from '../filter.ts'
import type { Log } from '../log.ts'
import type { Stored } from '../stored.ts'
import { ALL, type Definition } from './definition.ts'
import type { Progress } from './progress.ts'

/** The events of a group in order, after its checkpoint. Without a checkpoint, the first event is included. */
export class Source {
  readonly #ofAll: boolean
  readonly #feed: Feed
  readonly #filter: Filter | undefined
  readonly #progress: Progress

  constructor(
    log: Log,
    { stream, settings, filter }: Definition,
    checkpoint: number | undefined,
    progress: Progress,
  ) {
    const inclusive = checkpoint === undefined
    const from = checkpoint ?? settings.from
    this.#ofAll = stream === ALL
    this.#feed = this.#ofAll ? feedOfAll(log, from, inclusive) : feedOfStream(log, stream, from, inclusive)
    this.#filter = filter && filterOf(filter)
    this.#progress = progress
  }

  next(): { readonly stored: Stored; readonly place: number } | undefined {
    for (let stored = this.#feed.next(); stored; stored = this.#feed.next()) {
      const place = this.#ofAll ? stored.position : stored.revision
      if (!this.#filter || this.#filter.matches(stored)) {
        this.#progress.take(place)
        return { stored, place }
      }
      this.#progress.pass(place)
    }
    return undefined
  }
}
