/** The stop of a reader. Disposing it removes its listener: Node keeps a combined signal with a listener until it aborts. */
export interface Stop extends Disposable {
  /** Aborts with each of the given signals. */
  readonly signal: AbortSignal
}

/** Wakes the waiters of a key (a stream's name, or the whole log). A wake without a waiter has no effect. */
export class Wakes {
  readonly #waiting = new Map<string, (() => void)[]>()

  /** Resolves at the next wake of the key. A waiter that aborts wakes the key itself. */
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

  /** A stop that wakes the waiters of a key, so that a wait needs no listener of its own. */
  stopOf(key: string, ...signals: AbortSignal[]): Stop {
    const signal = AbortSignal.any(signals)
    const wake = () => this.wake(key)
    signal.addEventListener('abort', wake, { once: true })
    return { signal, [Symbol.dispose]: () => signal.removeEventListener('abort', wake) }
  }
}
