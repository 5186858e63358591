import { Readable } from 'node:stream'

/**
 * The source of the bytes of a put. Records a failure of the sender, to distinguish it from a failure of the engine.
 */
export class Sender {
  readonly #content: AsyncIterable<Uint8Array> | Uint8Array
  #failed = false

  constructor(content: AsyncIterable<Uint8Array> | Uint8Array) {
    this.#content = content
  }

  get failed(): boolean {
    return this.#failed
  }

  async *read(): AsyncGenerator<Uint8Array> {
    try {
      if (this.#content instanceof Uint8Array) yield this.#content
      else yield* this.#content
    } catch (error) {
      this.#failed = true
      throw error
    }
  }

  /** Stops reading. */
  stop(): void {
    if (this.#content instanceof Readable) this.#content.destroy()
  }
}
