/** The reason why this node is not ready, for `/readyz` and for refused requests. */
export class Readiness {
  readonly #stopping: AbortSignal
  #waiting: string | null = STARTING
  #failed: string | null = null
  #refusing: string | null = null

  constructor(stopping: AbortSignal) {
    this.#stopping = stopping
  }

  /** Sets the reason for waiting; null clears it. */
  waitFor(reason: string | null): void {
    this.#waiting = reason ?? STARTING
  }

  started(): void {
    this.#waiting = null
  }

  /** Sets the reason why the event store refuses writes; null clears it. */
  refusing(reason: string | null): void {
    this.#refusing = reason && `Writes are refused: ${reason}`
  }

  /** Records that a background loop stays stopped, so that an operator must act. The first reason is kept. */
  fail(reason: string): void {
    this.#failed ??= reason
  }

  /** The reason why the node is not ready; null when it is. */
  get reason(): string | null {
    return this.#stopping.aborted
      ? 'The server is stopping'
      : (this.#failed ?? this.#waiting ?? this.#refusing)
  }
}

const STARTING = 'The server is starting'
