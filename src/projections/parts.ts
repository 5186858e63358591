import { clock } from '../clock.ts'
import { isRetryable } from '../errors.ts'

const FIRST_EVENTS = 256
const LEAST_EVENTS = 16
const MOST_EVENTS = 1 << 20
/** The target duration of a part, if most of it is that of its events. */
const TARGET_MS = 2000
/** How much the sizes of two parts differ at least, so that their durations show the costs. */
const LEAST_RATIO = 1.5
/** After so many parts of about one size, a slow engine gets one of another size: the costs may have changed. */
const MOST_ALIKE = 8
/** The events of a part have at least this part of its time: the durations of two parts differ by chance too. */
const LEAST_SHARE = 1000
/** How much larger the next part is, at most; and how fast that is reached again after an error. */
const MOST_GROWTH = 4
const GROWTH_STEP = 0.02

interface Stored {
  readonly events: number
  readonly ms: number
}

/** What a part takes: the time for itself, and that for each of its events, milliseconds. */
interface Costs {
  readonly ofPart: number
  readonly ofEvent: number
}

/**
 * The parts in which a batch is stored, adapted to the speed of the engine. The projector repeats a batch from its checkpoint after an
 * error, so a slow server might never store a large one as a whole. A fast engine soon gets whole batches. A part may take long
 * whatever its size, as on an overloaded server. Then at least half of its time is that of its events: smaller ones would only be
 * more, and the read model would never reach the end of the log.
 */
export class Parts {
  readonly #now: () => number
  #most = FIRST_EVENTS
  #growth = MOST_GROWTH
  #latest: Stored | undefined
  /** The latest part of another size than that of `#latest`. */
  #other: Stored | undefined
  /** The parts since `#other`. */
  #alike = 0

  constructor(now: () => number = () => clock.monotonic()) {
    this.#now = now
  }

  /** Stores all events of a batch, part by part. */
  async store<T>(
    events: readonly T[],
    store: (part: readonly T[], isLast: boolean) => Promise<void>,
  ): Promise<void> {
    let from = 0
    do {
      const part = events.slice(from, from + this.#most)
      from += part.length
      const began = this.#now()
      try {
        await store(part, from >= events.length)
      } catch (error) {
        if (isRetryable(error)) this.#failed(part.length)
        throw error
      }
      this.#stored({ events: part.length, ms: this.#now() - began })
    } while (from < events.length)
  }

  #failed(events: number): void {
    this.#growth = 1
    this.#resize(events / 4)
  }

  #stored(stored: Stored): void {
    this.#growth = Math.min(MOST_GROWTH, this.#growth + GROWTH_STEP)
    if (this.#latest && differ(this.#latest, stored)) [this.#other, this.#alike] = [this.#latest, 0]
    this.#latest = stored
    if (++this.#alike > MOST_ALIKE && stored.ms > TARGET_MS)
      return this.#resize(this.#most >= 2 * LEAST_EVENTS ? this.#most / 2 : 2 * this.#most)
    const { ofPart, ofEvent } = costsOf(stored, this.#other)
    const best = Math.max(TARGET_MS - ofPart, ofPart) / ofEvent
    if (best < this.#most || stored.events === this.#most)
      this.#resize(Math.min(best, this.#growth * this.#most))
  }

  #resize(events: number): void {
    this.#most = Math.round(Math.min(Math.max(events, LEAST_EVENTS), MOST_EVENTS))
  }
}

const differ = (a: Stored, b: Stored): boolean =>
  Math.max(a.events, b.events) >= LEAST_RATIO * Math.max(1, Math.min(a.events, b.events))

/** Without a part of another size, all of the time is that of the events. */
const costsOf = ({ events, ms }: Stored, other: Stored | undefined): Costs => {
  const whole = Math.max(1, ms) / Math.max(1, events)
  if (!other || !differ({ events, ms }, other)) return { ofPart: 0, ofEvent: whole }
  const slope = (ms - other.ms) / (events - other.events)
  const ofEvent = Math.min(whole, Math.max(slope, whole / LEAST_SHARE))
  return { ofPart: Math.max(0, ms - ofEvent * events), ofEvent }
}
