/** Why this node does not take requests, for `/readyz` and for what is refused until it does. */
export class Readiness {
  readonly #stopping: AbortSignal
  #waiting: string | null = STARTING
  #failed: string | null = null

  constructor(stopping: AbortSignal) {
    this.#stopping = stopping
  }

  /** What the start waits for; null: nothing in particular. */
  waitFor(reason: string | null): void {
    this.#waiting = reason ?? STARTING
  }

  started(): void {
    this.#waiting = null
  }

  /** A loop in the background was stopped for good: the operator must look at the node. The first reason is kept. */
  fail(reason: string): void {
    this.#failed ??= reason
  }

  /** Returns null when the node is ready. */
  get reason(): string | null {
    return this.#stopping.aborted ? 'The server is stopping' : (this.#failed ?? this.#waiting)
  }
}

const STARTING = 'The server is starting'
