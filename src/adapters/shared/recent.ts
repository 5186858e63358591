import type { Recorded } from '../../events/event.ts'
import { heapBytesOf } from '../../loops/heapBytes.ts'
import { BATCH_BYTES } from './batchBytes.ts'

/** Maximum events and their memory: many small objects take twenty times their text. Live readers are rarely further behind. */
const KEPT = 8192
const KEPT_BYTES = 16 << 20

/** The newest events of the log by position, so that live readers need not parse them. */
export class Recent {
  readonly #events: (Recorded | undefined)[] = Array.from({ length: KEPT })
  readonly #lengths = new Uint32Array(KEPT)
  readonly #sizes = new Uint32Array(KEPT)
  #bytes = 0
  #from: number
  #last: number

  constructor(last: number) {
    this.#from = last + 1
    this.#last = last
  }

  /** Adds an event with its length in the log. Returns the last event that was dropped to make room. */
  add(event: Recorded, length = 0): Recorded | undefined {
    const bytes = heapBytesOf(event)
    let gone: Recorded | undefined
    this.#last++
    if (this.#last - this.#from >= KEPT) gone = this.#forget()
    this.#events[this.#last % KEPT] = event
    this.#lengths[this.#last % KEPT] = length
    this.#sizes[this.#last % KEPT] = bytes
    this.#bytes += bytes
    while (this.#bytes > KEPT_BYTES && this.#from < this.#last) gone = this.#forget()
    return gone
  }

  #forget(): Recorded | undefined {
    const oldest = this.#from++ % KEPT
    const event = this.#events[oldest]
    this.#bytes -= this.#sizes[oldest] as number
    this.#events[oldest] = undefined
    return event
  }

  /** Forgets an event that was removed from the log. */
  remove(position: number): void {
    if (!this.at(position)) return
    this.#bytes -= this.#sizes[position % KEPT] as number
    this.#sizes[position % KEPT] = 0
    this.#events[position % KEPT] = undefined
  }

  at(position: number): Recorded | undefined {
    return position >= this.#from && position <= this.#last ? this.#events[position % KEPT] : undefined
  }

  /** Returns the length in the log of an event that `at` returned. */
  lengthAt(position: number): number {
    return this.#lengths[position % KEPT] as number
  }

  /** Returns the memory of an event that `at` returned. */
  bytesAt(position: number): number {
    return this.#sizes[position % KEPT] as number
  }

  /**
   * Returns the events after a position, up to `limit` positions later or `BATCH_BYTES`, and at least one position; undefined if
   * some of them were dropped.
   */
  after(position: number, limit: number): { events: Recorded[]; upTo: number } | undefined {
    if (position + 1 < this.#from) return undefined
    const events: Recorded[] = []
    const last = Math.min(position + limit, this.#last)
    let upTo = position
    for (let bytes = 0; upTo < last && bytes < BATCH_BYTES; bytes += this.bytesAt(upTo)) {
      const event = this.#events[++upTo % KEPT]
      if (event) events.push(event)
    }
    return { events, upTo }
  }
}
