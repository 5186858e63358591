/** The bytes of a file. They grow without a copy for each write. */
export class Content {
  #bytes: Buffer
  #size: number

  constructor(bytes: Uint8Array = new Uint8Array(0)) {
    this.#bytes = Buffer.from(bytes)
    this.#size = bytes.length
  }

  get size(): number {
    return this.#size
  }

  /** A view, which is valid until the next change. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size)
  }

  write(at: number, bytes: Uint8Array): void {
    this.#makeRoom(at + bytes.length)
    this.#bytes.set(bytes, at)
    this.#size = Math.max(this.#size, at + bytes.length)
  }

  resize(size: number): void {
    this.#makeRoom(size)
    if (size < this.#size) this.#bytes.fill(0, size, this.#size) // a later growth shows zeros
    this.#size = size
  }

  copy(): Content {
    return new Content(this.bytes)
  }

  #makeRoom(size: number): void {
    if (size <= this.#bytes.length) return
    const larger = Buffer.alloc(Math.max(size, 2 * this.#bytes.length, 4096))
    this.bytes.copy(larger)
    this.#bytes = larger
  }
}
