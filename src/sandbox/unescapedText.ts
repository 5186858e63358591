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

  /** Has room for the characters of a string of this size. Its memory is that of the longest string so far. */
  begin(size: number): void {
    if (this.bytes.length < size) {
      this.bytes = Buffer.allocUnsafe(size)
      this.places = new Uint32Array(size + 1)
    }
    this.length = 0
  }

  /** Adds the characters of a part of a valid string between its quotes. Returns the end of the last one. */
  read(json: Buffer, from: number, to: number): number {
    let at = from
    while (at < to) {
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
    this.places[this.length] = at
    return at
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
    this.#pushCharacter(isPair ? 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00) : unit, at)
    return at + (isPair ? 12 : 6)
  }

  /** Half of a character becomes U+FFFD, as `Buffer.from` does it. */
  #pushCharacter(given: number, at: number): void {
    const code = isHigh(given) || isLow(given) ? 0xfffd : given
    if (code < 0x80) return this.#push(code, at)
    if (code < 0x800) this.#push(0xc0 | (code >> 6), at)
    else {
      if (code < 0x10000) this.#push(0xe0 | (code >> 12), at)
      else {
        this.#push(0xf0 | (code >> 18), at)
        this.#push(0x80 | ((code >> 12) & 0x3f), at)
      }
      this.#push(0x80 | ((code >> 6) & 0x3f), at)
    }
    this.#push(0x80 | (code & 0x3f), at)
  }
}

const unitAt = (json: Buffer, at: number): number => {
  let unit = 0
  for (let digit = at + 2; digit < at + 6; digit++) unit = (unit << 4) | hexAt(json, digit)
  return unit
}

/** The value of a hexadecimal digit: the code points of letters have bit 6, and 1 to 6 in their lower bits. */
const hexAt = (json: Buffer, at: number): number => {
  const byte = json[at] as number
  return (byte & 0xf) + (byte >> 6) * 9
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000
