/** A chunk under this size is copied beside others. */
const SMALL_BYTES = 4 << 10
/** Small chunks that wait before they are joined. */
const MOST_SMALL = 256

/**
 * The chunks of one sequence of bytes. The sender decides their sizes, and each chunk needs more than a hundred bytes of
 * memory beside its own. Small chunks are therefore joined while they arrive.
 */
export class ByteChunks {
  #joined: Buffer[] = []
  #small: Buffer[] = []
  #length = 0

  /** Bytes of all chunks. */
  get length(): number {
    return this.#length
  }

  add(chunk: Buffer): void {
    this.#length += chunk.length
    if (chunk.length < SMALL_BYTES) {
      this.#small.push(chunk)
      if (this.#small.length === MOST_SMALL) this.#join()
      return
    }
    this.#join()
    this.#joined.push(chunk)
  }

  /** Removes and returns all bytes. */
  take(): Buffer {
    const chunks = [...this.#joined, ...this.#small]
    const bytes = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, this.#length)
    this.#joined = []
    this.#small = []
    this.#length = 0
    return bytes
  }

  #join(): void {
    if (this.#small.length === 0) return
    this.#joined.push(Buffer.concat(this.#small))
    this.#small = []
  }
}
