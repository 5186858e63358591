/**
 * A map that drops the least recently used entries and keeps `size` to twice `size` of them. It has two generations,
 * because deletion from the front of one large `Map` is slow. With `most`, the weights of all entries stay below twice
 * `most` and the weight of one entry.
 */
export class BoundedMap<K, V> {
  readonly #size: number
  readonly #most: number
  #young = new Map<K, V>()
  #old = new Map<K, V>()
  /** The weights of the entries of each generation; empty without `most`. */
  #weights = new Map<K, number>()
  #oldWeights = new Map<K, number>()
  #weight = 0

  constructor(size: number, most = Infinity) {
    this.#size = size
    this.#most = most
  }

  get(key: K): V | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old, this.#oldWeights.get(key))
    return old
  }

  /** `weight`: of the entry, such as its bytes. */
  set(key: K, value: V, weight = 0): void {
    this.#young.set(key, value)
    if (this.#most !== Infinity) {
      this.#weight += weight - (this.#weights.get(key) ?? 0)
      this.#weights.set(key, weight)
    }
    if (this.#young.size < this.#size && this.#weight < this.#most) return
    this.#old = this.#young
    this.#oldWeights = this.#weights
    this.#young = new Map()
    this.#weights = new Map()
    this.#weight = 0
  }

  delete(key: K): void {
    this.#young.delete(key)
    this.#old.delete(key)
    this.#weight -= this.#weights.get(key) ?? 0
    this.#weights.delete(key)
    this.#oldWeights.delete(key)
  }

  clear(): void {
    for (const part of [this.#young, this.#old, this.#weights, this.#oldWeights]) part.clear()
    this.#weight = 0
  }
}
