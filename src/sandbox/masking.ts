/**
 * Replaces secrets in what a child sends. M1: a value that was given to a child is masked in everything that it sends
 * later. M2: the time is linear in the size of a text, whatever the values are: the first `PREFIX_BYTES` of a form decide.
 */
import { MASK } from '../events/mask.ts'
import { RawJson } from '../events/rawJson.ts'

/** A shorter value occurs by chance. */
const MIN_VALUE = 4
/** An encoded value or a line of it is searched from this length on. */
const MIN_FORM = 8
const PREFIX_BYTES = 32

/** Lines of a value that are also masked on their own, such as those of a private key. */
const MAX_LINES = 32

/** Forms with the same prefix whose whole length is masked. */
const MAX_RESTS = 8

/** Different values that one child may be given. */
const MAX_VALUES = 512
const MAX_VALUE_BYTES = 1 << 20

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** A prefix tree of bytes in one hash table, so that a value is added in the time of its own length. */
class PrefixTree {
  #keys = new Int32Array(1024).fill(-1)
  #nodes = new Int32Array(1024)
  #size = 0

  next(node: number, byte: number): number {
    const key = (node << 8) | byte
    const at = this.#slotOf(key)
    return this.#keys[at] === key ? (this.#nodes[at] as number) : 0
  }

  /** Returns the node of the prefix. */
  add(prefix: Uint8Array): number {
    let node = 0
    for (const byte of prefix) node = this.next(node, byte) || this.#grow((node << 8) | byte)
    return node
  }

  #grow(key: number): number {
    if (this.#size * 2 >= this.#keys.length) this.#double()
    const at = this.#slotOf(key)
    this.#keys[at] = key
    return (this.#nodes[at] = ++this.#size)
  }

  #double(): void {
    const [keys, nodes] = [this.#keys, this.#nodes]
    this.#keys = new Int32Array(keys.length * 2).fill(-1)
    this.#nodes = new Int32Array(keys.length * 2)
    keys.forEach((key, at) => {
      if (key === -1) return
      const slot = this.#slotOf(key)
      this.#keys[slot] = key
      this.#nodes[slot] = nodes[at] as number
    })
  }

  #slotOf(key: number): number {
    const mask = this.#keys.length - 1
    let at = (Math.imul(key, 0x9e3779b1) >>> 7) & mask
    while (this.#keys[at] !== key && this.#keys[at] !== -1) at = (at + 1) & mask
    return at
  }
}

export class Masking {
  readonly #values = new Set<string>()
  readonly #tree = new PrefixTree()
  /** The rest of the forms that end at a node after their prefix. */
  readonly #rests = new Map<number, Buffer[]>()
  #bytes = 0

  get isEmpty(): boolean {
    return this.#values.size === 0
  }

  /** Whether the child should be replaced before it has too many values. */
  get isHalfFull(): boolean {
    return this.#values.size > MAX_VALUES / 2 || this.#bytes > MAX_VALUE_BYTES / 2
  }

  /** Masks the value from now on. Returns false if the child was given too many values. */
  add(value: string): boolean {
    if (value.length < MIN_VALUE || this.#values.has(value)) return true
    if (this.#values.size >= MAX_VALUES || this.#bytes + value.length > MAX_VALUE_BYTES) return false
    this.#values.add(value)
    this.#bytes += value.length
    for (const form of formsOf(value)) this.#addForm(Buffer.from(form))
    return true
  }

  #addForm(form: Buffer): void {
    const node = this.#tree.add(form.subarray(0, PREFIX_BYTES))
    const rests = [...(this.#rests.get(node) ?? []), form.subarray(PREFIX_BYTES)]
    this.#rests.set(node, rests.slice(0, MAX_RESTS))
  }

  /** Masks the values in a text. */
  text(text: string): string {
    const bytes = Buffer.from(text)
    const masked = this.#masked(bytes)
    return masked === bytes ? text : masked.toString()
  }

  /** Masks the values in any JSON value. */
  json(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value)
    if (typeof value === 'number') return this.#values.has(String(value)) ? MASK : value
    if (value instanceof RawJson) return this.#raw(value)
    if (Array.isArray(value)) return value.map((each: unknown) => this.json(each))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [this.text(key), this.json(each)]))
  }

  /** Masks the strings of a text of JSON, and its numbers, without parsing the whole. */
  #raw(json: RawJson): RawJson {
    const { bytes } = json
    const parts: Buffer[] = []
    let done = 0
    const replace = (from: number, to: number, by: string) => {
      parts.push(bytes.subarray(done, from), Buffer.from(by))
      done = to
    }
    for (let at = 0; at < bytes.length;) {
      const byte = bytes[at] as number
      const end = byte === QUOTE ? endOfString(bytes, at) : isNumeric(byte) ? endOfNumber(bytes, at) : at + 1
      if (byte === QUOTE) {
        const text = JSON.parse(bytes.toString('utf8', at, end)) as string
        const masked = this.text(text)
        if (masked !== text) replace(at, end, JSON.stringify(masked))
      } else if (isNumeric(byte) && this.#values.has(bytes.toString('latin1', at, end)))
        replace(at, end, JSON.stringify(MASK))
      at = end
    }
    return parts.length === 0 ? json : new RawJson(Buffer.concat([...parts, bytes.subarray(done)]))
  }

  #masked(bytes: Buffer): Buffer {
    const parts: Buffer[] = []
    let done = 0
    for (let at = 0; at < bytes.length;) {
      const length = this.#matchAt(bytes, at)
      if (length > 0) {
        parts.push(bytes.subarray(done, at), Buffer.from(MASK))
        done = at + length
      }
      at += length || 1
    }
    return parts.length === 0 ? bytes : Buffer.concat([...parts, bytes.subarray(done)])
  }

  /** The length of the longest form that begins here, or of the part of it that is here beyond its prefix; else 0 (M2). */
  #matchAt(bytes: Buffer, start: number): number {
    let longest = 0
    let node = 0
    for (let at = start; at < bytes.length;) {
      node = this.#tree.next(node, bytes[at++] as number)
      if (node === 0) break
      const rests = this.#rests.get(node)
      if (rests) longest = at - start + Math.max(...rests.map((rest) => commonLength(rest, bytes, at)))
    }
    return longest
  }
}

const commonLength = (rest: Buffer, bytes: Buffer, at: number): number => {
  let length = 0
  while (length < rest.length && rest[length] === bytes[at + length]) length++
  return length
}

/** The value as it may appear in a text: itself, escaped, encoded, and its lines. */
const formsOf = (value: string): Set<string> => {
  const bytes = Buffer.from(value)
  const escaped = JSON.stringify(value).slice(1, -1)
  const encoded = [
    encodeURIComponent(value.toWellFormed()),
    new URLSearchParams([['', value]]).toString().slice(1),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    ...[0, 1, 2].flatMap((offset) => base64FormsOf(bytes, offset)),
  ]
  const lines = value.split(/\r?\n/).length > 1 ? value.split(/\r?\n/).slice(0, MAX_LINES) : []
  const long = [...encoded, ...lines.map((line) => line.trim())].filter(({ length }) => length >= MIN_FORM)
  return new Set([value, escaped, ...long])
}

/**
 * The characters of base64 that depend on the value alone, when it begins at this offset of three bytes: where more
 * bytes follow, and where it is at the end.
 */
const base64FormsOf = (bytes: Buffer, offset: number): string[] => {
  const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
  const from = Math.ceil((offset * 4) / 3)
  const own = text.slice(from, Math.floor(((offset + bytes.length) * 4) / 3))
  return [own, text.slice(from).replace(/=+$/, '')].flatMap((form) => [
    form,
    form.replaceAll('+', '-').replaceAll('/', '_'),
  ])
}

const endOfString = (bytes: Buffer, start: number): number => {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at + 1
}

const isNumeric = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x2e

const endOfNumber = (bytes: Buffer, start: number): number => {
  let at = start
  while (at < bytes.length && isNumeric(bytes[at] as number)) at++
  return at
}
