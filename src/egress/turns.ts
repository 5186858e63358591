/** Cost in bytes that one child may cause in one turn of the event loop, before others have their turn. */
const TURN_BYTES = 128 << 10

/**
 * Shares the event loop: a child that moved its bytes of this turn pauses until the next one. `resume` is called once
 * for each pause.
 */
export class Turns {
  readonly #resume: () => void
  #left = TURN_BYTES
  #waiting = false

  constructor(resume: () => void) {
    this.#resume = resume
  }

  get over(): boolean {
    return this.#left <= 0
  }

  spend(bytes: number): void {
    this.#left -= bytes
    if (this.#waiting) return
    this.#waiting = true
    setImmediate(() => {
      const paused = this.over
      this.#left = TURN_BYTES
      this.#waiting = false
      if (paused) this.#resume()
    })
  }
}
