import type { Stored } from './stored.ts'

/** Bytes of ids by which a repeat without a revision is detected. Best effort, because they are only in memory. */
const BYTES = 8 * 1024 * 1024
const BYTES_PER_ID = 100

/** The ids of the last events. They identify repeats of appends without a revision. */
export class RecentIds {
  readonly #byId = new Map<string, Stored>()

  add(event: Stored): void {
    this.#byId.delete(event.id)
    this.#byId.set(event.id, event)
    if (this.#byId.size * BYTES_PER_ID <= BYTES) return
    const [oldest] = this.#byId.keys()
    if (oldest !== undefined) this.#byId.delete(oldest)
  }

  /** The last event with this id, when it is one of the stream. */
  find(stream: string, id: string): Stored | undefined {
    const event = this.#byId.get(id)
    return event?.stream === stream ? event : undefined
  }
}
