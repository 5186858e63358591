import { START } from '../../../events/event.ts'
import { reads, Slices } from '../../../loops/slices.ts'
import type { Batch, Filter, StreamBatch } from '../../../ports/eventStore.ts'
import { matcherOf } from '../../shared/matching.ts'
import { readableBatch, readableStreamBatch } from '../../shared/readable.ts'
import { Wakes } from '../../shared/wakes.ts'
import { cursorOf, positionOf } from './cursors.ts'
import type { Log } from './log.ts'
import { BATCH, type Reader } from './reader.ts'

interface Parts {
  readonly log: Log
  readonly reader: Reader
  readonly closing: AbortSignal
}

const ALL = ''

/**
 * Readers that follow the log or one stream, and wait at its end. Each page is read and parsed synchronously, so a reader that is
 * behind takes turns: a long log must not hold the event loop.
 */
export class Subscriptions {
  readonly #log: Log
  readonly #reader: Reader
  readonly #closing: AbortSignal
  readonly #wakes = new Wakes()
  /** The turns of the service's own readers: those of requests do not delay them, however many they are. */
  readonly #own = new Slices()

  constructor({ log, reader, closing }: Parts) {
    this.#log = log
    this.#reader = reader
    this.#closing = closing
    closing.addEventListener('abort', () => this.#wakes.wakeAll(), { once: true })
  }

  async *subscribe({
    after = START,
    signal,
    ...filter
  }: Filter & { after?: string; signal: AbortSignal }): AsyncGenerator<Batch> {
    const matches = matcherOf(filter)
    const turns = filter.env_id === undefined ? this.#own : reads
    using _ = this.#wakes.wakeOn(signal, ALL)
    let position = positionOf(after)
    let reported = false
    while (!signal.aborted && !this.#closing.aborted) {
      const last = this.#log.last
      if (position >= last && reported) {
        await this.#wakes.next(ALL)
        continue
      }
      const { events, upTo } =
        position < last ? this.#reader.readLog(position) : { events: [], upTo: position }
      position = upTo
      const caughtUp = position >= this.#log.last
      const matching = matches ? events.filter(matches) : events
      reported = caughtUp
      yield* readableBatch({ events: matching, cursor: cursorOf(position), caughtUp })
      const wait = caughtUp ? null : turns.take()
      if (wait) await wait
    }
  }

  async *follow(
    stream: string,
    { after = -1, signal }: { after?: number; signal: AbortSignal },
  ): AsyncGenerator<StreamBatch> {
    using _ = this.#wakes.wakeOn(signal, stream)
    let revision = after
    let reported = false
    while (!signal.aborted && !this.#closing.aborted) {
      const { events, next, isCut } = this.#reader.readStream(stream, revision + 1, BATCH)
      if (next === revision + 1 && reported) {
        await this.#wakes.next(stream)
        continue
      }
      revision = next - 1
      reported = !isCut
      yield* readableStreamBatch({ events, caughtUp: reported })
      const wait = isCut ? reads.take() : null
      if (wait) await wait
    }
  }

  /** Wakes the readers of the log and of the streams, which have new durable events. */
  wake(streams: Iterable<string>): void {
    this.#wakes.wake(ALL)
    for (const stream of streams) this.#wakes.wake(stream)
  }
}
