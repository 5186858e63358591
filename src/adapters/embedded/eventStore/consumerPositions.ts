import { clock } from '../../../clock.ts'
import type { Log } from './log.ts'
import type { StreamIndex } from './streamIndex.ts'

/** Interval at which the log receives the positions: it syncs each of its writes. */
const KEEP_MS = 5000

/**
 * The positions of consumer groups. The index has the newest ones. The log has them too, a few seconds late, so that a
 * lost index does not make a group start again.
 */
export class ConsumerPositions {
  readonly #index: StreamIndex
  readonly #log: Log
  /** Positions that the log does not have yet. */
  readonly #moved = new Map<string, number>()
  #keptAt = clock.monotonic()

  constructor(index: StreamIndex, log: Log) {
    this.#index = index
    this.#log = log
  }

  /** Whether the log lacks positions. */
  get isBehind(): boolean {
    return this.#moved.size > 0
  }

  /** The position of a group; undefined if it is new. */
  of(group: string): number | undefined {
    const known = [this.#index.positionNamed(nameOf(group)), this.#log.consumer(group)].filter(
      (position) => position !== undefined,
    )
    return known.length === 0 ? undefined : Math.min(Math.max(...known), this.#log.last)
  }

  save(group: string, position: number): void {
    this.#index.setPosition(nameOf(group), position)
    this.#moved.set(group, position)
  }

  /** Forgets a group. Throws `unavailable`. */
  forget(group: string): void {
    this.#moved.delete(group)
    this.#log.forgetConsumer(group)
    this.#index.removePosition(nameOf(group))
  }

  /** Stores the positions in the log, if the last time was long ago. Throws `unavailable`. */
  keepIfDue(): void {
    if (clock.monotonic() - this.#keptAt > KEEP_MS) this.keep()
  }

  keep(): void {
    if (this.#moved.size === 0) return
    this.#keptAt = clock.monotonic()
    this.#log.keepConsumers(this.#moved)
    this.#moved.clear()
  }
}

const nameOf = (group: string): string => `group:${group}`
