import { MAX_JSON_DEPTH } from './jsonDepth.ts'

export const LINE_FEED = 0x0a
export const CARRIAGE_RETURN = 0x0d
const TAB = 0x09
export const SPACE = 0x20
export const QUOTE = 0x22
export const COMMA = 0x2c
const MINUS = 0x2d
const PLUS = 0x2b
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
export const COLON = 0x3a
export const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const LETTER_U = 0x75
export const OPEN_OBJECT = 0x7b

/** The part of a value that begins or continues at the current byte. */
const VALUE = 0
const STRING = 1
const KEY = 2

/**
 * Checks the JSON value that begins at `at`, in UTF-8, without creating objects and without recursion. A value may be large, so
 * the check can stop anywhere between two characters of a string, or between two values.
 */
export class JsonCheck {
  readonly #bytes: Uint8Array
  /** The first bytes of the lists and objects around the current byte. */
  readonly #open = new Uint8Array(MAX_JSON_DEPTH)
  #depth = 0
  #part: typeof VALUE | typeof STRING | typeof KEY = VALUE
  /** The place of the first byte that is not checked: the end of the value when it is complete. */
  at: number

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes
    this.at = at
  }

  /** Checks about `most` bytes more. Returns whether the value is complete. Throws `SyntaxError` if it is not valid. */
  next(most: number): boolean {
    const bytes = this.#bytes
    const open = this.#open
    const until = Math.min(this.at + most, bytes.length)
    let { at } = this
    let depth = this.#depth
    let part = this.#part
    for (;;) {
      if (part === VALUE) {
        if (at >= until && at < bytes.length) break
        const first = byteAt(bytes, at)
        if (first === QUOTE) {
          part = STRING
          at++
        } else if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
          if (depth === MAX_JSON_DEPTH)
            throw new SyntaxError(`Expected at most ${MAX_JSON_DEPTH} levels of nesting`)
          at = skipSpace(bytes, at + 1)
          if (byteAt(bytes, at) !== closing(first)) {
            open[depth++] = first
            if (first === OPEN_ARRAY) continue
            part = KEY
            at = startOfKey(bytes, at)
          } else at++
        } else at = endOfScalar(bytes, at)
      }
      if (part !== VALUE) {
        at = skipText(bytes, at, until)
        if (byteAt(bytes, at) !== QUOTE) {
          if (at >= bytes.length) throw unexpected(bytes, at)
          break
        }
        at++
        const isKey = part === KEY
        part = VALUE
        if (isKey) {
          at = skipSpace(bytes, at)
          if (byteAt(bytes, at) !== COLON) throw unexpected(bytes, at)
          at = skipSpace(bytes, at + 1)
          continue
        }
      }
      // A value has ended at `at`: close what it completes.
      for (;;) {
        if (depth === 0) {
          this.at = at
          return true
        }
        const container = open[depth - 1] as number
        at = skipSpace(bytes, at)
        const byte = byteAt(bytes, at++)
        if (byte === COMMA) {
          at = skipSpace(bytes, at)
          if (container === OPEN_OBJECT) {
            part = KEY
            at = startOfKey(bytes, at)
          }
          break
        }
        if (byte !== closing(container)) throw unexpected(bytes, at - 1)
        depth--
      }
    }
    this.at = at
    this.#depth = depth
    this.#part = part
    return false
  }
}

/**
 * A byte, or 0 after the last one, which is no part of JSON. The comparison of what is not there would be slow from then on,
 * also for all other bytes.
 */
const byteAt = (bytes: Uint8Array, at: number): number => (at < bytes.length ? (bytes[at] as number) : 0)

/** A closing bracket is two code points after the opening one. */
const closing = (open: number): number => open + 2

/** Returns the place after the quote of a key. */
const startOfKey = (bytes: Uint8Array, at: number): number => {
  if (byteAt(bytes, at) !== QUOTE) throw unexpected(bytes, at)
  return at + 1
}

/** Returns the place of the quote that ends a string, or one from `until` on between two of its characters. */
const skipText = (bytes: Uint8Array, from: number, until: number): number => {
  let at = from
  while (at < until) {
    const byte = bytes[at] as number
    if (byte === QUOTE) return at
    if (byte < SPACE) throw unexpected(bytes, at)
    at = byte === BACKSLASH ? endOfEscape(bytes, at) : at + 1
  }
  return at
}

/** The bytes that may follow a backslash, apart from `u`. */
const ESCAPED = new Uint8Array(256)
for (const byte of Buffer.from('"\\/bfnrt')) ESCAPED[byte] = 1

const HEX = new Uint8Array(256)
for (const byte of Buffer.from('0123456789ABCDEFabcdef')) HEX[byte] = 1

/** Returns the end of the escape that begins with the backslash at `at`. */
const endOfEscape = (bytes: Uint8Array, at: number): number => {
  const byte = byteAt(bytes, at + 1)
  if (ESCAPED[byte] === 1) return at + 2
  if (byte !== LETTER_U || at + 6 > bytes.length) throw unexpected(bytes, at + 1)
  for (let digit = at + 2; digit < at + 6; digit++)
    if (HEX[byteAt(bytes, digit)] !== 1) throw unexpected(bytes, digit)
  return at + 6
}

const WORDS = ['true', 'false', 'null'].map((word) => Buffer.from(word))

const endOfScalar = (bytes: Uint8Array, start: number): number => {
  const first = byteAt(bytes, start)
  if (first === MINUS || isDigit(first)) return endOfNumber(bytes, start)
  const word = WORDS.find((each) => each[0] === first)
  if (!word) throw unexpected(bytes, start)
  for (let index = 1; index < word.length; index++)
    if (byteAt(bytes, start + index) !== word[index]) throw unexpected(bytes, start + index)
  return start + word.length
}

const endOfNumber = (bytes: Uint8Array, start: number): number => {
  let at = byteAt(bytes, start) === MINUS ? start + 1 : start
  at = byteAt(bytes, at) === ZERO ? at + 1 : endOfDigits(bytes, at)
  if (byteAt(bytes, at) < POINT) return at // mostly a comma
  if (byteAt(bytes, at) === POINT) at = endOfDigits(bytes, at + 1)
  if (byteAt(bytes, at) === 0x65 || byteAt(bytes, at) === 0x45) {
    const sign = byteAt(bytes, at + 1)
    at = endOfDigits(bytes, sign === PLUS || sign === MINUS ? at + 2 : at + 1)
  }
  return at
}

/** Returns the end of the digits from `start` on, of which there must be one. */
const endOfDigits = (bytes: Uint8Array, start: number): number => {
  if (!isDigit(byteAt(bytes, start))) throw unexpected(bytes, start)
  let at = start + 1
  while (isDigit(byteAt(bytes, at))) at++
  return at
}

const isDigit = (byte: number): boolean => byte >= ZERO && byte <= NINE

export const unexpected = (bytes: Uint8Array, at: number): SyntaxError =>
  new SyntaxError(at < bytes.length ? `Unexpected byte at ${at}` : 'Unexpected end of JSON')

export const skipSpace = (bytes: Uint8Array, from: number): number => {
  let at = from
  while (at < bytes.length) {
    const byte = bytes[at] as number
    if (byte > SPACE || !isSpace(byte)) break
    at++
  }
  return at
}

const isSpace = (byte: number): boolean =>
  byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB

/** Returns the end of the string that begins at `start`. */
export const endOfString = (bytes: Uint8Array, start: number): number => {
  const end = skipText(bytes, start + 1, bytes.length)
  if (byteAt(bytes, end) !== QUOTE) throw unexpected(bytes, end)
  return end + 1
}
