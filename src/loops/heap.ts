/** A binary heap: the first value is the one that comes before all others. */
export class Heap<T> {
  readonly #values: T[] = []
  readonly #isBefore: (one: T, other: T) => boolean

  constructor(isBefore: (one: T, other: T) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#values.length
  }

  get first(): T | undefined {
    return this.#values[0]
  }

  push(value: T): void {
    const values = this.#values
    let at = values.push(value) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = values[above] as T
      if (!this.#isBefore(value, parent)) break
      values[at] = parent
      at = above
    }
    values[at] = value
  }

  /** Removes the first value. */
  pop(): T | undefined {
    const values = this.#values
    const first = values[0]
    const last = values.pop()
    if (values.length === 0 || last === undefined) return first
    let at = 0
    for (let below = 1; below < values.length; below = 2 * at + 1) {
      const [left, right] = [values[below] as T, values[below + 1]]
      const isRight = right !== undefined && this.#isBefore(right, left)
      const child = isRight ? right : left
      if (!this.#isBefore(child, last)) break
      values[at] = child
      at = isRight ? below + 1 : below
    }
    values[at] = last
    return first
  }
}
