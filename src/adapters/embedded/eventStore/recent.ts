import type { Recorded } from '../../../events/event.ts'

/** Events kept in memory; live readers are rarely further behind. */
const KEPT = 8192

/** The newest events of the log, by position, so that live readers parse nothing. */
export class Recent {
  readonly #events: (Recorded | undefined)[] = Array.from({ length: KEPT })
  #from: number
  #last: number

  constructor(last: number) {
    this.#from = last + 1
    this.#last = last
  }

  add(event: Recorded): void {
    this.#last++
    this.#events[this.#last % KEPT] = event
    if (this.#last - this.#from >= KEPT) this.#from = this.#last - KEPT + 1
  }

  at(position: number): Recorded | undefined {
    return position >= this.#from && position <= this.#last ? this.#events[position % KEPT] : undefined
  }

  /** Up to `limit` events after a position; undefined when some of them are no longer here. */
  after(position: number, limit: number): Recorded[] | undefined {
    if (position + 1 < this.#from) return undefined
    const events: Recorded[] = []
    for (let at = position + 1; at <= this.#last && events.length < limit; at++) {
      events.push(this.#events[at % KEPT] as Recorded)
    }
    return events
  }
}
