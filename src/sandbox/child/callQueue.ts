/** Concurrent calls of one queue. */
const MAX_CALLS = 100

/** A host call of which the request is ready. */
interface Queued {
  /** Returns whether it was sent: then its reply follows. */
  readonly send: () => boolean
  readonly reject: (error: Error) => void
}

/** Host calls of one run: at most `MAX_CALLS` wait for their replies, and further ones wait here in order. */
export class CallQueue {
  #pending = 0
  readonly #waiting: Queued[] = []

  add(call: Queued): void {
    this.#waiting.push(call)
    this.#sendNext()
  }

  /** A call has its reply. */
  replied(): void {
    this.#pending--
    this.#sendNext()
  }

  /** Sends all that wait, whatever their number. */
  flush(): void {
    for (const { send } of this.#waiting.splice(0)) send()
  }

  /** Rejects all that wait, and forgets those that were sent. */
  clear(error: Error): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error)
    this.#pending = 0
  }

  #sendNext(): void {
    while (this.#pending < MAX_CALLS && this.#waiting.length > 0)
      if (this.#waiting.shift()?.send()) this.#pending++
  }
}
