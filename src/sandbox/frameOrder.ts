/** Frames over this size, bytes, are checked and masked in slices: other tenants need the event loop meanwhile. */
export const SLICED_BYTES = 512 << 10

/** Returns nothing if it is done, which most frames are at once. */
type Take = () => void | Promise<void>

interface Listener {
  /** A frame that needs several turns of the event loop has begun, or it and those after it have ended. */
  onChange(): void
  onError(error: unknown): void
}

/** Takes the frames of a child one after the other, in the order in which they arrive. */
export class FrameOrder {
  readonly #listener: Listener
  #waiting: Take[] = []
  isBusy = false

  constructor(listener: Listener) {
    this.#listener = listener
  }

  /** Throws the error of a frame that is taken at once. */
  add(take: Take): void {
    if (this.isBusy) {
      this.#waiting.push(take)
      return
    }
    const taken = take()
    if (taken) void this.#continueAfter(taken)
  }

  async #continueAfter(taken: Promise<void>): Promise<void> {
    this.isBusy = true
    this.#listener.onChange()
    try {
      await taken
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
        const wait = next()
        if (wait) await wait
      }
    } catch (error) {
      this.#waiting = []
      this.#listener.onError(error)
    } finally {
      this.isBusy = false
      this.#listener.onChange()
    }
  }
}
