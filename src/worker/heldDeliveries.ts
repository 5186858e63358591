import { CANCEL } from '../events/eventType.ts'
import type { Recorded } from '../events/event.ts'
import type { Delivery } from '../ports/eventStore.ts'

/** Whether the event may start runs. A cancellation starts none, and it makes room. */
export const needsRoom = ({ event }: Recorded): boolean =>
  event.type !== 'EventPublished' || event.event_type !== CANCEL

/**
 * Deliveries without a claim, because too many runs of their organization wait here. They are not acknowledged, so the
 * store limits their number, and another worker receives them when this one stops.
 */
export class HeldDeliveries {
  /** By organization, in order of arrival. */
  readonly #held = new Map<string, Map<string, Delivery>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  has(org_id: string): boolean {
    return this.#held.has(org_id)
  }

  /** A store may deliver an event again after a time; only the last delivery counts. */
  add(org_id: string, delivery: Delivery): void {
    const held = this.#held.get(org_id) ?? new Map<string, Delivery>()
    this.#held.set(org_id, held)
    if (!held.has(delivery.event.id)) this.#size++
    held.set(delivery.event.id, delivery)
  }

  /** Removes and returns the oldest delivery of each organization that `mayBegin`, while it may. */
  *ready(mayBegin: (org_id: string) => boolean): Generator<[org_id: string, delivery: Delivery]> {
    for (const [org_id, held] of this.#held) {
      for (const [id, delivery] of held) {
        if (!mayBegin(org_id)) break
        held.delete(id)
        this.#size--
        yield [org_id, delivery]
      }
      if (held.size === 0) this.#held.delete(org_id)
    }
  }
}
