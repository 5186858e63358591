import { isUtf8 } from 'node:buffer'

/** Levels of nesting in a value: deeper JSON would overflow the stack when it is stringified again. */
export const MAX_JSON_DEPTH = 1000

/** Values over this size are kept as text. Smaller ones are parsed. */
export const RAW_BYTES = 64 << 10

/** Members of an object that is read member by member. */
const MAX_MEMBERS = 64
/** Bytes of the members of one object that are parsed. Beyond these, only the smallest are. */
const PARSED_BYTES = 4 * RAW_BYTES
const SMALLEST_BYTES = 1 << 10

/**
 * A JSON value as its text in UTF-8. It is not parsed in the service, because `[{},{},…]` needs twenty times its size
 * as objects. The text is valid JSON and one line.
 */
export class RawJson {
  readonly bytes: Buffer

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** Only for values that cannot need much more memory than their text, such as strings. */
  parse(): unknown {
    return JSON.parse(this.bytes.toString('utf8')) as unknown
  }

  get isText(): boolean {
    return this.bytes[0] === QUOTE
  }

  get isList(): boolean {
    return this.bytes[0] === OPEN_ARRAY
  }

  /** Reads an object whose large members remain text; any other value remains as it is. */
  get loose(): unknown {
    try {
      return this.bytes[0] === OPEN_OBJECT ? parseLoosely(this.bytes) : this
    } catch {
      return this // it has too many members
    }
  }

  toJSON(): string {
    return insert(this)
  }
}

/** A JSON value that remains in the blobs: its bytes `from` up to, but without, `to`. */
export class StoredJson {
  readonly key: string
  readonly from: number
  readonly to: number

  constructor({ key, size }: { key: string; size: number }, from = 0, to = size) {
    this.key = key
    this.from = from
    this.to = to
  }

  toJSON(): string {
    return insert(this)
  }
}

/** A large value that the process of a function fetches in chunks, in place of the result of a host call. */
export class KeptJson {
  readonly handle: number
  readonly size: number

  constructor(handle: number, size: number) {
    this.handle = handle
    this.size = size
  }
}

/** A text that no client can know, in place of a value that is not converted by `JSON.stringify`. */
const MARK = `raw-${crypto.randomUUID()}`
const QUOTED_MARK = Buffer.from(`"${MARK}"`)

/** The parts of the value that is converted now, in the order of their marks. */
let inserted: (RawJson | StoredJson)[] | null = null

const insert = (part: RawJson | StoredJson): string => {
  if (!inserted) throw new TypeError('Expected a value without text of JSON, or jsonPieces to convert it')
  inserted.push(part)
  return MARK
}

/** Converts a value to JSON. Values in the blobs remain pieces of their own. */
export const jsonPieces = (value: unknown): (Buffer | StoredJson)[] => {
  const parts: (RawJson | StoredJson)[] = []
  const before = inserted
  inserted = parts
  let json: Buffer
  try {
    json = Buffer.from(JSON.stringify(value) ?? 'null')
  } finally {
    inserted = before
  }
  const pieces: (Buffer | StoredJson)[] = []
  let at = 0
  for (const part of parts) {
    const mark = json.indexOf(QUOTED_MARK, at)
    pieces.push(json.subarray(at, mark), part instanceof RawJson ? part.bytes : part)
    at = mark + QUOTED_MARK.length
  }
  return [...pieces, json.subarray(at)].filter((piece) => piece instanceof StoredJson || piece.length > 0)
}

/** Converts a value without values in the blobs to JSON. */
export const jsonBytes = (value: unknown): Buffer => {
  if (value instanceof RawJson) return value.bytes
  const pieces = jsonPieces(value).map((piece) => {
    if (Buffer.isBuffer(piece)) return piece
    throw new TypeError('Expected a value without values in the blobs')
  })
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
}

/**
 * Parses the JSON of an object whose members over `RAW_BYTES` remain text. The large objects at `within`, one inside
 * the other, are read in the same way. Any other JSON remains text. Throws `SyntaxError` if the text is not JSON, is
 * nested too deeply, or has too many members.
 */
export const parseLoosely = (bytes: Buffer, within: readonly string[] = []): unknown => {
  if (!isUtf8(bytes)) throw new SyntaxError('Expected UTF-8')
  const start = skipSpace(bytes, 0)
  if (bytes[start] === OPEN_OBJECT) return looseObject(bytes, start, within, bytes.length)
  const end = endOfValue(bytes, start)
  if (skipSpace(bytes, end) !== bytes.length) throw unexpected(bytes, end)
  return looseValue(bytes, { from: start, to: end, most: RAW_BYTES }, null)
}

/** `end`: the object must end there, apart from white space. */
const looseObject = (
  bytes: Buffer,
  start: number,
  [inner, ...within]: readonly string[],
  end: number,
): unknown => {
  const members: [string, unknown][] = []
  let left = PARSED_BYTES
  for (const { key, from, to } of membersOf(bytes, start, end)) {
    if (members.length === MAX_MEMBERS) throw new SyntaxError(`Expected at most ${MAX_MEMBERS} members`)
    const most = Math.max(SMALLEST_BYTES, Math.min(RAW_BYTES, left))
    const value = looseValue(bytes, { from, to, most }, key === inner ? within : null)
    if (!(value instanceof RawJson)) left -= to - from
    members.push([key, value])
  }
  return Object.fromEntries(members)
}

/** `most`: bytes of a value that is parsed. */
const looseValue = (
  bytes: Buffer,
  { from, to, most }: { from: number; to: number; most: number },
  within: readonly string[] | null,
): unknown => {
  if (to - from <= most) return JSON.parse(bytes.toString('utf8', from, to)) as unknown
  if (within && bytes[from] === OPEN_OBJECT) return looseObject(bytes, from, within, to)
  return new RawJson(inOneLine(bytes.subarray(from, to)))
}

/** A line break between two tokens would end the line of a server-sent event. */
const inOneLine = (bytes: Buffer): Buffer => {
  if (!bytes.includes(LINE_FEED) && !bytes.includes(CARRIAGE_RETURN)) return bytes
  const copy = Buffer.from(bytes)
  for (const lineBreak of [LINE_FEED, CARRIAGE_RETURN])
    for (let at = copy.indexOf(lineBreak); at >= 0; at = copy.indexOf(lineBreak, at)) copy[at] = SPACE
  return copy
}

interface Member {
  readonly key: string
  /** The bytes of its value. */
  readonly from: number
  readonly to: number
}

/** Yields the members of the object that begins at `start` and ends at `end`, apart from white space. */
function* membersOf(bytes: Buffer, start: number, end: number): Generator<Member> {
  const checkEnd = (at: number) => {
    if (skipSpace(bytes, at + 1) < end) throw unexpected(bytes, at + 1)
  }
  let at = skipSpace(bytes, start + 1)
  if (bytes[at] === CLOSE_OBJECT) return checkEnd(at)
  for (;;) {
    if (bytes[at] !== QUOTE) throw unexpected(bytes, at)
    const keyEnd = endOfString(bytes, at)
    const key = JSON.parse(bytes.toString('utf8', at, keyEnd)) as string
    at = skipSpace(bytes, keyEnd)
    if (bytes[at] !== COLON) throw unexpected(bytes, at)
    const from = skipSpace(bytes, at + 1)
    const to = endOfValue(bytes, from)
    yield { key, from, to }
    at = skipSpace(bytes, to)
    if (bytes[at] === CLOSE_OBJECT) return checkEnd(at)
    if (bytes[at] !== COMMA) throw unexpected(bytes, at)
    at = skipSpace(bytes, at + 1)
  }
}

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

const unexpected = (bytes: Buffer, at: number): SyntaxError =>
  new SyntaxError(at < bytes.length ? `Unexpected byte at ${at}` : 'Unexpected end of JSON')

const skipSpace = (bytes: Buffer, from: number): number => {
  let at = from
  while (
    bytes[at] === SPACE ||
    bytes[at] === LINE_FEED ||
    bytes[at] === CARRIAGE_RETURN ||
    bytes[at] === 0x09
  )
    at++
  return at
}

/** Returns the end of the value that begins at `start`. Checks it without creating objects, and without recursion. */
const endOfValue = (bytes: Buffer, start: number): number => {
  const open = new Uint8Array(MAX_JSON_DEPTH)
  let depth = 0
  let at = start
  for (;;) {
    // A value begins at `at`.
    const first = bytes[at]
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      if (depth === MAX_JSON_DEPTH)
        throw new SyntaxError(`Expected at most ${MAX_JSON_DEPTH} levels of nesting`)
      const next = skipSpace(bytes, at + 1)
      if (bytes[next] === first + 2) at = next + 1 // empty: the closing bracket is two code points later
      else {
        open[depth++] = first
        at = first === OPEN_OBJECT ? valueOfMember(bytes, next) : next
        continue
      }
    } else at = first === QUOTE ? endOfString(bytes, at) : endOfScalar(bytes, at)
    // A value has ended at `at`: close what it completes.
    for (;;) {
      if (depth === 0) return at
      const container = open[depth - 1] as number
      at = skipSpace(bytes, at)
      if (bytes[at] === COMMA) {
        at = skipSpace(bytes, at + 1)
        if (container === OPEN_OBJECT) at = valueOfMember(bytes, at)
        break
      }
      if (bytes[at] !== container + 2) throw unexpected(bytes, at)
      at++
      depth--
    }
  }
}

/** Returns the start of the value of the member whose key begins at `start`. */
const valueOfMember = (bytes: Buffer, start: number): number => {
  if (bytes[start] !== QUOTE) throw unexpected(bytes, start)
  const at = skipSpace(bytes, endOfString(bytes, start))
  if (bytes[at] !== COLON) throw unexpected(bytes, at)
  return skipSpace(bytes, at + 1)
}

const ESCAPED = new Set(Buffer.from('"\\/bfnrt'))

const endOfString = (bytes: Buffer, start: number): number => {
  for (let at = start + 1; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) return at + 1
    if (byte < 0x20) throw unexpected(bytes, at)
    if (byte !== BACKSLASH) continue
    at++
    if (bytes[at] === 0x75) {
      if (!/^[\dA-Fa-f]{4}$/.test(bytes.toString('latin1', at + 1, at + 5))) throw unexpected(bytes, at)
      at += 4
    } else if (!ESCAPED.has(bytes[at] as number)) throw unexpected(bytes, at)
  }
  throw unexpected(bytes, bytes.length)
}

/** Characters of the longest number that is looked at. */
const MAX_SCALAR = 1024
const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[Ee][+-]?\d+)?)(?=[\s,\]}]|$)/

const endOfScalar = (bytes: Buffer, start: number): number => {
  let end = start
  while (end < bytes.length && end - start < MAX_SCALAR && isScalarByte(bytes[end] as number)) end++
  if (!SCALAR.test(bytes.toString('latin1', start, end))) throw unexpected(bytes, start)
  return end
}

/** Letters, digits, `+`, `-` and `.`. */
const isScalarByte = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) ||
  (byte >= 0x61 && byte <= 0x7a) ||
  byte === 0x2b ||
  byte === 0x2d ||
  byte === 0x2e ||
  byte === 0x45
