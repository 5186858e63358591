import type { Recorded } from '../../events/event.ts'
import { heapBytesOf } from '../../loops/heapBytes.ts'
import { BATCH_BYTES } from '../shared/batchBytes.ts'

/** Events in a page, which is read in one call. */
export const PAGE = 512

/** The events that a page keeps of one call. The call is read to its end, but events beyond `BATCH_BYTES` are not kept. */
export class Portion {
  readonly events: Recorded[] = []
  #seen = 0
  #bytes = 0

  /** Whether no further event is kept: the log may have more. */
  get isFull(): boolean {
    return this.#bytes >= BATCH_BYTES
  }

  /** The events that the next call should ask for, so that all of them are kept if they have the same size. */
  get fitting(): number {
    if (this.#bytes === 0) return PAGE
    return Math.max(1, Math.min(PAGE, Math.floor((this.#seen * BATCH_BYTES) / this.#bytes)))
  }

  /** Adds the next event; null: one that is skipped. */
  add(event: Recorded | null): void {
    this.#seen++
    if (!event) return
    this.events.push(event)
    this.#bytes += heapBytesOf(event)
  }
}
