import { isOf, type Recorded } from './event.ts'

/** The events and requested runs that no worker has taken, found by reading facts in the order of the log. */
export class Unhandled {
  readonly #ids = new Set<string>()

  get size(): number {
    return this.#ids.size
  }

  note(fact: Recorded): void {
    if (isOf(fact, 'EventPublished')) this.#ids.add(fact.event.event_id)
    else if (isOf(fact, 'EventHandled')) this.#ids.delete(fact.event.event_id)
    else if (isOf(fact, 'RunRequested')) this.#ids.add(fact.event.run_id)
    else if (isOf(fact, 'RunStarted') || isOf(fact, 'RunFailed') || isOf(fact, 'RunCancelled'))
      this.#ids.delete(fact.event.run_id)
  }

  /** Whether the fact is such an event or request. */
  has(fact: Recorded): boolean {
    if (isOf(fact, 'EventPublished')) return this.#ids.has(fact.event.event_id)
    return isOf(fact, 'RunRequested') && this.#ids.has(fact.event.run_id)
  }
}
