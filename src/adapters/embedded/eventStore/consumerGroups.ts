import { START } from '../../../events/event.ts'
import type { Consuming, Delivery } from '../../../ports/eventStore.ts'
import type { ConsumerPositions } from './consumerPositions.ts'
import { positionOf } from './cursors.ts'
import { demandOpen } from './demandOpen.ts'
import { Group } from './groups.ts'
import type { Refusals } from './refusals.ts'
import type { Subscriptions } from './subscriptions.ts'

interface Parts {
  readonly positions: ConsumerPositions
  readonly subscriptions: Subscriptions
  readonly refusals: Refusals
  readonly closing: AbortSignal
  /** Called when a group has moved: `tidy` is called soon. */
  readonly changed: () => void
}

/** The consumer groups with consumers, and the positions of all. */
export class ConsumerGroups {
  readonly #parts: Parts
  readonly #groups = new Map<string, Group>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Whether the log lacks positions. */
  get isBehind(): boolean {
    return this.#parts.positions.isBehind
  }

  consume(group: string, { from = START, signal, ...options }: Consuming): AsyncGenerator<Delivery> {
    const { positions, subscriptions, closing, changed } = this.#parts
    demandOpen(closing)
    const known = this.#groups.get(group)
    const joined =
      known ??
      new Group(
        group,
        {
          subscribe: (options) => subscriptions.subscribe(options),
          load: (name) => positions.of(name),
          save: (name, position) => positions.save(name, position),
          changed,
        },
        positionOf(from),
      )
    this.#groups.set(group, joined)
    return joined.consume({ ...options, signal: AbortSignal.any([signal, closing]) })
  }

  /** Forgets a group that nothing consumes. */
  drop(group: string): void {
    if (this.#groups.get(group)?.isEmpty === false) return
    this.#groups.delete(group)
    this.#parts.positions.forget(group)
  }

  /** Saves the positions, and forgets the groups without consumers. */
  tidy(): void {
    for (const [name, group] of this.#groups) {
      group.save()
      if (group.isEmpty) this.#groups.delete(name)
    }
    this.#keeping(() => this.#parts.positions.keepIfDue())
  }

  /** Stores the positions in the log. */
  keep(): void {
    this.#keeping(() => this.#parts.positions.keep())
  }

  close(): void {
    for (const group of this.#groups.values()) group.save()
    this.keep()
  }

  #keeping(keep: () => void): void {
    try {
      keep()
    } catch (error) {
      this.#parts.refusals.failed(error) // the index has the positions
    }
  }
}
