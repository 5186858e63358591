const BACKSLASH = 0x5c
const LETTER_U = 0x75

/** The characters that follow a backslash in JSON, and their meaning. Others stand for themselves. */
const MEANING = new Map(
  Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }).map(([letter, meaning]) => [
    letter.charCodeAt(0),
    meaning.charCodeAt(0),
  ]),
)

/** A string of JSON without its escapes, in UTF-8, and where each of its bytes is in the JSON. */
export class UnescapedText {
  bytes = Buffer.alloc(0)
  /** The place of each byte, and the end of the string. */
  places = new Uint32Array(1)
  length = 0

  /** Reads the characters of a valid string between its quotes. Its memory is that of the longest string so far. */
  read(json: Buffer, from: number, to: number): void {
    if (this.bytes.length < to - from) {
      this.bytes = Buffer.allocUnsafe(to - from)
      this.places = new Uint32Array(to - from + 1)
    }
    this.length = 0
    for (let at = from; at < to;) {
      const byte = json[at] as number
      if (byte !== BACKSLASH) {
        this.#push(byte, at++)
        continue
      }
      const next = json[at + 1] as number
      if (next === LETTER_U) at = this.#readUnicode(json, at)
      else {
        this.#push(MEANING.get(next) ?? next, at)
        at += 2
      }
    }
    this.places[this.length] = to
  }

  #push(byte: number, at: number): void {
    this.places[this.length] = at
    this.bytes[this.length++] = byte
  }

  /** Reads `\uXXXX`, or two of them for one character. Returns where it ends. */
  #readUnicode(json: Buffer, at: number): number {
    const unit = unitAt(json, at)
    const second =
      isHigh(unit) && json[at + 6] === BACKSLASH && json[at + 7] === LETTER_U ? unitAt(json, at + 6) : 0
    const isPair = isLow(second)
    const text = String.fromCharCode(unit, ...(isPair ? [second] : []))
    for (const byte of Buffer.from(text)) this.#push(byte, at)
    return at + (isPair ? 12 : 6)
  }
}

const unitAt = (json: Buffer, at: number): number =>
  Number.parseInt(json.toString('latin1', at + 2, at + 6), 16)
const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000
