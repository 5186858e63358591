import { streamOf } from '../../events/streams.ts'
import type { Recorded } from '../../events/event.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import { attemptAfter, type Ending, isEnding } from './awaitEnding.ts'

/** Without a reason, an abort creates an error with a stack. */
const [LATE, ENDED] = ['a run is behind', 'no run is awaited']

/** A run that is awaited. */
interface Awaited {
  readonly run_id: string
  readonly stream_id: string
  /** The revision of its request in the stream. */
  readonly after: number
}

interface Waiting {
  readonly signal: AbortSignal
  readonly resolve: (ending: Ending | null) => void
  readonly reject: (error: unknown) => void
}

/**
 * Awaits the ends of child runs. The runs of a stream share one reader, which looks at each fact once. With a reader for each run,
 * the work would be the square of their number, and a function may await thousands.
 */
export class ChildEndings {
  readonly #store: Pick<EventStore, 'follow'>
  readonly #streams = new Map<string, StreamEndings>()

  constructor(store: Pick<EventStore, 'follow'>) {
    this.#store = store
  }

  /** Resolves with the end of a run, or of the last of its retries; null when the signal aborts first. */
  of(awaited: Awaited, signal: AbortSignal): Promise<Ending | null> {
    if (signal.aborted) return Promise.resolve(null)
    const { stream_id, after } = awaited
    const known = this.#streams.get(stream_id)
    if (known) return known.of(awaited, signal)
    const stream = new StreamEndings(after, () => {
      if (this.#streams.get(stream_id) === stream) this.#streams.delete(stream_id)
    })
    this.#streams.set(stream_id, stream)
    const ending = stream.of(awaited, signal)
    void stream.read((options) => this.#store.follow(streamOf.stream(stream_id), options))
    return ending
  }
}

type Follow = (options: Parameters<EventStore['follow']>[1]) => ReturnType<EventStore['follow']>

/** The runs of one stream that are awaited, by the id of their present attempt. It ends with the last of them. */
class StreamEndings {
  readonly #waiting = new Map<string, Waiting>()
  /** A signal has one listener, because its runs may be thousands. */
  readonly #signals = new Map<AbortSignal, () => void>()
  readonly #onEnd: () => void
  /** All facts up to this revision were looked at. */
  #seen: number
  #reading = new AbortController()

  constructor(after: number, onEnd: () => void) {
    this.#seen = after
    this.#onEnd = onEnd
  }

  of({ run_id, after }: Awaited, signal: AbortSignal): Promise<Ending | null> {
    const { promise, resolve, reject } = Promise.withResolvers<Ending | null>()
    this.#waiting.set(run_id, { signal, resolve, reject })
    if (!this.#signals.has(signal)) {
      const leave = () => this.#leave(signal)
      this.#signals.set(signal, leave)
      signal.addEventListener('abort', leave, { once: true })
    }
    if (after < this.#seen) {
      this.#seen = after // facts that are looked at again change nothing
      this.#reading.abort(LATE)
    }
    return promise
  }

  /** Reads until no run is awaited. All runs end with null when the store is closed, and with the error of a read. */
  async read(follow: Follow): Promise<void> {
    try {
      do {
        this.#reading = new AbortController()
        const { signal } = this.#reading
        for await (const { events } of follow({ after: this.#seen, signal })) {
          if (signal.aborted) break
          for (const recorded of events) this.#look(recorded)
        }
      } while (this.#reading.signal.reason === LATE && this.#waiting.size > 0)
      this.#end(({ resolve }) => resolve(null))
    } catch (error) {
      this.#end(({ reject }) => reject(error))
    }
  }

  #look({ event, revision }: Recorded): void {
    this.#seen = revision
    if (!isEnding(event)) return
    const waiting = this.#waiting.get(event.run_id)
    if (!waiting) return
    this.#waiting.delete(event.run_id)
    const next = attemptAfter(event)
    if (next !== undefined) this.#waiting.set(next, waiting)
    else waiting.resolve(event)
    if (this.#waiting.size === 0) this.#end()
  }

  #leave(signal: AbortSignal): void {
    for (const [run_id, waiting] of this.#waiting) {
      if (waiting.signal !== signal) continue
      this.#waiting.delete(run_id)
      waiting.resolve(null)
    }
    this.#signals.delete(signal)
    if (this.#waiting.size === 0) this.#end()
  }

  #end(settle?: (waiting: Waiting) => void): void {
    this.#onEnd()
    this.#reading.abort(ENDED)
    for (const [signal, leave] of this.#signals) signal.removeEventListener('abort', leave)
    this.#signals.clear()
    if (settle) for (const waiting of this.#waiting.values()) settle(waiting)
    this.#waiting.clear()
  }
}
