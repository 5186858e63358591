/** A loop that other work can interrupt. */
export class Pausable {
  #stop = new AbortController()
  #ended: Promise<unknown> = Promise.resolve()
  #resumed: Promise<void> | null = null

  /** Runs the loop until the signal aborts or the loop ends by itself. It begins again after each pause. */
  async run(loop: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#resumed) await this.#resumed
      const stop = new AbortController()
      this.#stop = stop
      const running = loop(AbortSignal.any([signal, stop.signal]))
      this.#ended = running.catch(() => {})
      await running
      if (!stop.signal.aborted) return
    }
  }

  /** Ends the loop, does the work, and lets the loop begin again. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const over = Promise.withResolvers<void>()
    this.#resumed = over.promise
    this.#stop.abort()
    try {
      await this.#ended
      return await work()
    } finally {
      this.#resumed = null
      over.resolve()
    }
  }
}
