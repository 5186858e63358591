/**
 * The callers of this process that wait for the end of a run: of webhooks, evaluated code and tools. They cannot ask for the
 * result later, so a stop waits for them as long as for runs, and longer than for other requests.
 */
export class WaitingCalls {
  readonly #over = new AbortController()
  #count = 0

  get count(): number {
    return this.#count
  }

  /** Aborts when the server that stops waits no longer. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  enter(): void {
    this.#count++
  }

  leave(): void {
    this.#count--
  }

  /** All callers are answered now, whether or not their runs have ended. */
  end(): void {
    this.#over.abort()
  }
}
