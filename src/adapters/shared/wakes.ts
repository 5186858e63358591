/** Wakes those who wait for a key (a stream's name, or the whole log). A wake with nobody waiting is lost. */
export class Wakes {
  readonly #waiting = new Map<string, (() => void)[]>()

  /** Resolves at the next wake of the key. Whoever waits wakes the key itself when it gives up. */
  next(key: string): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(key)
      if (waiting) waiting.push(resolve)
      else this.#waiting.set(key, [resolve])
    })
  }

  wake(key: string): void {
    const waiting = this.#waiting.get(key)
    if (!waiting) return
    this.#waiting.delete(key)
    for (const resolve of waiting) resolve()
  }
}
