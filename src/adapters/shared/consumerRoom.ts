import { heapBytesOf } from '../../loops/heapBytes.ts'
import type { Consuming } from '../../ports/eventStore.ts'

/** The deliveries of one consumer that wait for their acknowledgements: a bounded number, and bounded memory. */
export class ConsumerRoom<K> {
  /** The most of them. */
  readonly most: number
  readonly #mostBytes: number
  readonly #held = new Map<K, number>()
  #bytes = 0

  constructor({ inFlight = 64, inFlightBytes = Infinity }: Pick<Consuming, 'inFlight' | 'inFlightBytes'>) {
    this.most = inFlight
    this.#mostBytes = inFlightBytes
  }

  /** Whether they take as much memory as they may. */
  get isHeavy(): boolean {
    return this.#bytes >= this.#mostBytes
  }

  /** The number of further deliveries that have room. */
  get left(): number {
    return this.isHeavy ? 0 : Math.max(0, this.most - this.#held.size)
  }

  get isEmpty(): boolean {
    return this.#held.size === 0
  }

  get keys(): K[] {
    return [...this.#held.keys()]
  }

  /** Adds a delivery. A delivery that repeats is counted once. */
  take(key: K, event: unknown): void {
    this.free(key)
    const bytes = this.#mostBytes === Infinity ? 0 : heapBytesOf(event)
    this.#held.set(key, bytes)
    this.#bytes += bytes
  }

  /** Removes a delivery. Returns false if it is not here. */
  free(key: K): boolean {
    this.#bytes -= this.#held.get(key) ?? 0
    return this.#held.delete(key)
  }

  clear(): void {
    this.#held.clear()
    this.#bytes = 0
  }
}
