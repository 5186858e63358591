/** Wakes those who wait for a key (a stream's name, or the whole log). A wake with nobody waiting is lost. */
export class Wakes {
  readonly #waiting = new Map<string, Set<() => void>>()

  /** Resolves at the next wake of the key, or when the signal aborts. */
  next(key: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve()
      const waiting = this.#waiting.get(key) ?? new Set()
      this.#waiting.set(key, waiting)
      const done = () => {
        signal.removeEventListener('abort', done)
        waiting.delete(done)
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key)
        resolve()
      }
      waiting.add(done)
      signal.addEventListener('abort', done)
    })
  }

  wake(key: string): void {
    const waiting = this.#waiting.get(key)
    if (!waiting) return
    for (const done of waiting) done()
  }

  get idle(): boolean {
    return this.#waiting.size === 0
  }
}
