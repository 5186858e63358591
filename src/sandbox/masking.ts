/**
 * Replaces secrets in what a child sends. M1: a value that was given to a child is masked in everything that it sends
 * later. M2: the time is linear in the size of a text, whatever the values are: the first `PREFIX_BYTES` of a form decide.
 * M3: the memory is that of the result, whatever the number of secrets in a text is.
 */
import { MASK } from '../events/mask.ts'
import { completed, RawJson } from '../events/rawJson.ts'
import { PrefixTree } from './prefixTree.ts'
import { Replaced } from './replaced.ts'
import { isEmpty, longestOf, NO_RESTS, remaining, type Rests, withRest } from './rests.ts'
import { formsOf } from './secretForms.ts'
import { UnescapedText } from './unescapedText.ts'

/** A shorter value occurs by chance. */
const MIN_VALUE = 4
const PREFIX_BYTES = 32

/** Different values that one child may be given. */
const MAX_VALUES = 512
/** The search needs up to 40 bytes of memory for each of theirs. */
const MAX_VALUE_BYTES = 512 << 10

/** Bytes that are searched between two yields of `jsonSteps`. */
const STEP_BYTES = 64 << 10

const QUOTE = 0x22
const BACKSLASH = 0x5c
const CUT = '…'

/** A secret at the end of a text, which may continue in the next piece of it. */
export interface Unfinished {
  /** The node of its beginning; 0 if the whole prefix of a form has been found. */
  readonly node: number
  /** What may follow. */
  readonly rests: Rests
}

/** The search of a text from `from` to `to`, which has come as far as `at`. */
interface Search {
  readonly from: number
  readonly to: number
  at: number
  node: number
}

const searchOf = (from: number, to: number, node = 0): Search => ({ from, to, at: from, node })

type OnFound = (from: number, to: number) => void

export class Masking {
  readonly #values = new Set<string>()
  readonly #tree = new PrefixTree()
  /** The rest of the longer forms, by the node of their prefix. */
  readonly #rests = new Map<number, Rests>()
  #bytes = 0

  get isEmpty(): boolean {
    return this.#values.size === 0
  }

  /** Whether the child should be replaced before it has too many values. */
  get isHalfFull(): boolean {
    return this.#values.size > MAX_VALUES / 2 || this.#bytes > MAX_VALUE_BYTES / 2
  }

  /** Masks the value from now on, also without space around it. Returns false if the child was given too many values. */
  add(value: string): boolean {
    if (value.length < MIN_VALUE || this.#values.has(value)) return true
    if (this.#values.size >= MAX_VALUES || this.#bytes + value.length > MAX_VALUE_BYTES) return false
    this.#values.add(value)
    this.#bytes += value.length
    for (const form of formsOf(value)) this.#addForm(Buffer.from(form))
    return this.add(value.trim())
  }

  #addForm(form: Buffer): void {
    const node = this.#tree.add(form.subarray(0, PREFIX_BYTES))
    if (form.length <= PREFIX_BYTES) return
    this.#rests.set(node, withRest(this.#restsOf(node), form.subarray(PREFIX_BYTES)))
  }

  /** Masks the values in a text. */
  text(text: string): string {
    const bytes = Buffer.from(text)
    const replaced = new Replaced(bytes)
    this.#find(bytes, searchOf(0, bytes.length), replaced.by(MASK))
    return replaced.bytes === bytes ? text : replaced.bytes.toString()
  }

  /** Masks the values in a text that may have been cut, also the beginning of one where it ends. */
  cutText(text: string): string {
    return text.endsWith(CUT)
      ? this.piece(text.slice(0, -CUT.length), { isCut: true }).text + CUT
      : this.text(text)
  }

  /** Masks the values in a piece of a text, also a part of one where the piece begins, or ends because it was cut. */
  piece(
    text: string,
    { before, isCut }: { readonly before?: Unfinished | undefined; readonly isCut: boolean },
  ): { readonly text: string; readonly unfinished?: Unfinished } {
    const bytes = Buffer.from(text)
    const to = bytes.length
    const replaced = new Replaced(bytes)
    const mask = replaced.by(MASK)
    const { node, rests } = before ?? NOTHING
    const from = longestOf(rests, bytes, 0, to)
    if (from > 0) mask(0, from)
    const continues = remaining(rests, bytes, 0, to)
    const unfinished = isEmpty(continues)
      ? this.#find(bytes, searchOf(from, to, from === 0 ? node : 0), mask)
      : { node: 0, rests: continues }
    if (!isCut) return { text: replaced.bytes.toString() }
    const begun = Math.min(this.#tree.depthOf(unfinished?.node ?? 0), to - replaced.done)
    if (begun >= MIN_VALUE) mask(to - begun, to)
    return { text: replaced.bytes.toString(), ...(unfinished && { unfinished }) }
  }

  /** Masks the values in any JSON value. */
  json(value: unknown, masked: (text: string) => string = (text) => this.text(text)): unknown {
    if (typeof value === 'string') return masked(value)
    if (typeof value === 'number') return this.#values.has(String(value)) ? MASK : value
    if (value instanceof RawJson) return completed(this.#raw(value))
    if (Array.isArray(value)) return value.map((each: unknown) => this.json(each, masked))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [masked(key), this.json(each, masked)]),
    )
  }

  /** The same in steps, between which other work can continue. */
  *jsonSteps(value: unknown): Generator<void, unknown> {
    return value instanceof RawJson ? yield* this.#raw(value) : this.json(value)
  }

  /** Masks the strings of a text of JSON, and its numbers, without parsing it. */
  *#raw(json: RawJson): Generator<void, RawJson> {
    const { bytes } = json
    const replaced = new Replaced(bytes)
    const [mask, maskNumber] = [replaced.by(MASK), replaced.by(JSON.stringify(MASK))]
    const unescaped = new UnescapedText()
    const maskUnescaped: OnFound = (from, to) => {
      const [start = 0, end = 0] = [unescaped.places[from], unescaped.places[to]]
      if (start < end) mask(start, end)
    }
    let pause = STEP_BYTES
    for (let at = 0; at < bytes.length;) {
      if (at >= pause) {
        yield
        pause = at + STEP_BYTES
      }
      const byte = bytes[at] as number
      if (byte === QUOTE) {
        const { end, hasEscapes } = endOfString(bytes, at)
        if (end - at > STEP_BYTES) {
          if (hasEscapes) yield* unescape(unescaped, bytes, at + 1, end)
          const search = hasEscapes ? searchOf(0, unescaped.length) : searchOf(at + 1, end)
          yield* this.#findInSteps(
            hasEscapes ? unescaped.bytes : bytes,
            search,
            hasEscapes ? maskUnescaped : mask,
          )
        } else if (hasEscapes) {
          unescaped.begin(end - at)
          unescaped.read(bytes, at + 1, end)
          this.#find(unescaped.bytes, searchOf(0, unescaped.length), maskUnescaped)
        } else this.#find(bytes, searchOf(at + 1, end), mask)
        at = end + 1
      } else if (isNumeric(byte)) {
        const end = endOfNumber(bytes, at)
        if (end - at >= MIN_VALUE && this.#values.has(bytes.toString('latin1', at, end))) maskNumber(at, end)
        at = end
      } else at++
    }
    return replaced.bytes === bytes ? json : new RawJson(replaced.bytes)
  }

  *#findInSteps(bytes: Buffer, search: Search, onFound: OnFound): Generator<void> {
    while (search.at < search.to) {
      this.#find(bytes, search, onFound, Math.min(search.at + STEP_BYTES, search.to))
      yield
    }
  }

  /** Reports the secrets of a text from left to right. Returns the one that may continue after its end, or after `until`. */
  #find(bytes: Buffer, search: Search, onFound: OnFound, until = search.to): Unfinished | undefined {
    const tree = this.#tree
    const { from, to } = search
    let { at, node } = search
    while (at < until) {
      node = tree.follow(node, bytes[at++] as number)
      if (node === 0) continue
      const word = tree.wordAt(node)
      if (word === 0) continue
      // A longer form may have begun before this one, or even before this text.
      let start = at - tree.depthOf(node)
      let length = start < from ? 0 : this.#lengthAt(bytes, start, to)
      if (length === 0) {
        start = at - tree.depthOf(word)
        length = start < from ? 0 : this.#lengthAt(bytes, start, to)
      }
      const end = length > 0 ? start + length : at + longestOf(this.#restsOf(word), bytes, at, to)
      onFound(Math.max(start, from), end)
      search.at = end
      if (end === to)
        return length > 0
          ? this.#unfinishedAt(bytes, start, to)
          : { node: 0, rests: remaining(this.#restsOf(word), bytes, at, to) }
      at = end
      node = 0
    }
    search.at = at
    search.node = node
    return node === 0 ? undefined : { node, rests: NO_RESTS }
  }

  /** The length of the longest form that begins here, or of the part of it that is here beyond its prefix; else 0 (M2). */
  #lengthAt(bytes: Buffer, start: number, to: number): number {
    let longest = 0
    let node = 0
    for (let at = start; at < to;) {
      node = this.#tree.below(node, bytes[at++] as number)
      if (node === 0) break
      if (this.#tree.isWord(node)) longest = at - start + longestOf(this.#restsOf(node), bytes, at, to)
    }
    return longest
  }

  /** What may follow a secret that begins here and extends to the end of a text. */
  #unfinishedAt(bytes: Buffer, start: number, to: number): Unfinished {
    let rests = NO_RESTS
    let node = 0
    for (let at = start; at < to;) {
      node = this.#tree.below(node, bytes[at++] as number)
      if (node === 0) break
      const continues = this.#rests.get(node) // of one node at most, at the end of a prefix
      if (continues) rests = remaining(continues, bytes, at, to)
    }
    return { node, rests }
  }

  #restsOf(node: number): Rests {
    return this.#rests.get(node) ?? NO_RESTS
  }
}

const NOTHING: Unfinished = { node: 0, rests: NO_RESTS }

function* unescape(text: UnescapedText, json: Buffer, from: number, to: number): Generator<void> {
  text.begin(to - from)
  for (let at = from; at < to; yield) at = text.read(json, at, Math.min(at + STEP_BYTES, to))
}

/** The place of the quote that ends the string of valid JSON which begins at `start`. */
const endOfString = (
  bytes: Buffer,
  start: number,
): { readonly end: number; readonly hasEscapes: boolean } => {
  let hasEscapes = false
  let at = start + 1
  while (at < bytes.length && bytes[at] !== QUOTE) {
    if (bytes[at] === BACKSLASH) {
      hasEscapes = true
      at++
    }
    at++
  }
  return { end: at, hasEscapes }
}

const isNumeric = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x2e

const endOfNumber = (bytes: Buffer, start: number): number => {
  let at = start
  while (at < bytes.length && isNumeric(bytes[at] as number)) at++
  return at
}
