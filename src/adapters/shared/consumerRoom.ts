import { heapBytesOf } from '../../loops/heapBytes.ts'

/** Memory of the deliveries of one consumer that wait for their acknowledgements, beside the last of them. */
const HELD_BYTES = 8 << 20

/** The deliveries of one consumer that wait for their acknowledgements: a bounded number, and bounded memory. */
export class ConsumerRoom<K> {
  readonly #inFlight: number
  readonly #held = new Map<K, number>()
  #bytes = 0

  constructor(inFlight: number) {
    this.#inFlight = inFlight
  }

  /** The number of further deliveries that have room. */
  get left(): number {
    return this.#bytes < HELD_BYTES ? Math.max(0, this.#inFlight - this.#held.size) : 0
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
    const bytes = heapBytesOf(event)
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
