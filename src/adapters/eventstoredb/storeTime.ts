import { clock } from '../../clock.ts'

/**
 * The least time that it can be on the clock of the server: it cannot be earlier than when it stored an event, and the
 * monotonic clock of this process measures the time since then. The clock of this node is not asked.
 */
export class StoreTime {
  #aheadMs = -Infinity

  /** Milliseconds since 1970; 0 before the first event. */
  get least(): number {
    return Math.max(0, this.#aheadMs + clock.monotonic())
  }

  /** This process has received an event. `at`: monotonic milliseconds. */
  saw({ created }: { readonly created: Date }, at = clock.monotonic()): void {
    this.#aheadMs = Math.max(this.#aheadMs, created.getTime() - at)
  }
}
