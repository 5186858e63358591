import { CANCEL } from '../events/eventType.ts'
import type { Recorded } from '../events/event.ts'
import type { Delivery } from '../ports/eventStore.ts'
import type { Line } from './lines.ts'

/** Whether the event may start runs. A cancellation starts none, and it makes room. */
export const needsRoom = ({ event }: Recorded): boolean =>
  event.type !== 'EventPublished' || event.event_type !== CANCEL

/**
 * Deliveries without a claim, because too many runs of their line wait here. They are not acknowledged, so the
 * store limits their number, and another worker receives them when this one stops.
 */
export class HeldDeliveries {
  /** By line, in order of arrival. */
  readonly #held = new Map<Line, Map<string, Delivery>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  has(line: Line): boolean {
    return this.#held.has(line)
  }

  /** A store may deliver an event again after a time; only the last delivery counts. */
  add(line: Line, delivery: Delivery): void {
    const held = this.#held.get(line) ?? new Map<string, Delivery>()
    this.#held.set(line, held)
    if (!held.has(delivery.event.id)) this.#size++
    held.set(delivery.event.id, delivery)
  }

  /** Removes and returns the oldest delivery of each line that `mayBegin`, while it may. */
  *ready(mayBegin: (line: Line) => boolean): Generator<[line: Line, delivery: Delivery]> {
    for (const [line, held] of this.#held) {
      for (const [id, delivery] of held) {
        if (!mayBegin(line)) break
        held.delete(id)
        this.#size--
        yield [line, delivery]
      }
      if (held.size === 0) this.#held.delete(line)
    }
  }
}
