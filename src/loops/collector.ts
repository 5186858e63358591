import { PerformanceObserver } from 'node:perf_hooks'

/** The garbage collector of this thread. */
export class Collector {
  readonly #observer = new PerformanceObserver(() => {})

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] })
  }

  /** Whether it has paused the thread since the last call. */
  hasPaused(): boolean {
    return this.#observer.takeRecords().length > 0
  }

  close(): void {
    this.#observer.disconnect()
  }
}
