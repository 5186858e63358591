import type { Recorded } from '../../events/event.ts'
import { BATCH_BYTES } from '../shared/batchBytes.ts'

/** Events that may wait for one follower. */
const MOST = 2048

/** The events that wait for a follower of one stream. */
export class Follower {
  /** The queue was full: the follower must read the missing events from the stream. */
  overflowed = false
  #queue: Recorded[] = []
  #bytes = 0

  /** `bytes`: the memory of the event. */
  add(event: Recorded, bytes: number): void {
    if (this.#queue.length >= MOST || this.#bytes >= BATCH_BYTES) this.overflowed = true
    else {
      this.#queue.push(event)
      this.#bytes += bytes
    }
  }

  /** Empties the queue. */
  take(): Recorded[] {
    const queue = this.#queue
    this.#queue = []
    this.#bytes = 0
    return queue
  }
}
