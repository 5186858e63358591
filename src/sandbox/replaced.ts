/** Bytes in which ranges are replaced, from left to right. Nothing is copied before the first one. */
export class Replaced {
  readonly #source: Buffer
  #copy: Buffer | undefined
  #length = 0
  /** The end of what was replaced last. */
  done = 0

  constructor(source: Buffer) {
    this.#source = source
  }

  /**
   * Returns a function that replaces a range by the text, which has only ASCII. A character of which it contains a part is
   * replaced as a whole: the rest would be no valid UTF-8.
   */
  by(text: string): (from: number, to: number) => void {
    return (from, to) => {
      const copy = this.#roomFor(this.#length + from - this.done + text.length)
      this.#length += this.#source.copy(copy, this.#length, this.done, from)
      for (let index = 0; index < text.length; index++) copy[this.#length++] = text.charCodeAt(index)
      this.done = to
      while (isContinuation(this.#source[this.done])) this.done++
    }
  }

  get bytes(): Buffer {
    if (!this.#copy) return this.#source
    const rest = this.#source.subarray(this.done)
    const copy = this.#roomFor(this.#length + rest.length)
    rest.copy(copy, this.#length)
    return copy.subarray(0, this.#length + rest.length)
  }

  #roomFor(length: number): Buffer {
    this.#copy ??= Buffer.allocUnsafe(this.#source.length + 16)
    if (this.#copy.length >= length) return this.#copy
    const larger = Buffer.allocUnsafe(length + (length >> 2))
    this.#copy.copy(larger, 0, 0, this.#length)
    return (this.#copy = larger)
  }
}

/** Whether a byte of UTF-8 continues a character. */
const isContinuation = (byte = 0): boolean => (byte & 0xc0) === 0x80
