/**
 * A map that drops the least recently used entries and keeps `size` to twice `size` of them. It has two generations,
 * because deletion from the front of one large `Map` is slow.
 */
export class BoundedMap<K, V> {
  readonly #size: number
  #young = new Map<K, V>()
  #old = new Map<K, V>()

  constructor(size: number) {
    this.#size = size
  }

  get(key: K): V | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: K, value: V): void {
    this.#young.set(key, value)
    if (this.#young.size < this.#size) return
    this.#old = this.#young
    this.#young = new Map()
  }

  delete(key: K): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
  }
}
