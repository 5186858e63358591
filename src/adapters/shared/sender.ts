import { Readable } from 'node:stream'

/** Where the bytes of a put come from. When it is the sender that fails, its failure is not the engine's to name. */
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

  /** Nothing more is wanted of it. */
  stop(): void {
    if (this.#content instanceof Readable) this.#content.destroy()
  }
}
