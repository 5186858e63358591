/** Wakes the waiters of a key (a stream's name, or the whole log). A wake without a waiter has no effect. */
export class Wakes {
  readonly #waiting = new Map<string, (() => void)[]>()

  /** Resolves at the next wake of the key. */
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

  wakeAll(): void {
    for (const key of this.#waiting.keys()) this.wake(key)
  }

  /**
   * Wakes the waiters of a key when the signal aborts, so that a wait needs no listener of its own. Disposing removes the
   * listener: Node keeps a combined signal with a listener until it aborts.
   */
  wakeOn(signal: AbortSignal, key: string): Disposable {
    const wake = () => this.wake(key)
    signal.addEventListener('abort', wake, { once: true })
    return { [Symbol.dispose]: () => signal.removeEventListener('abort', wake) }
  }
}
