import { isUtf8 } from 'node:buffer'
import {
  LINE_FEED,
  CARRIAGE_RETURN,
  SPACE,
  QUOTE,
  COMMA,
  COLON,
  OPEN_ARRAY,
  OPEN_OBJECT,
  endOfString,
  JsonCheck,
  skipSpace,
  unexpected,
} from './jsonCheck.ts'

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
    return completed(this.looseSteps())
  }

  /** The same in steps, between which other work can continue. */
  *looseSteps(): Generator<void, unknown> {
    try {
      return this.bytes[0] === OPEN_OBJECT ? yield* looseSteps(this.bytes) : this
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

/** Bytes that are checked between two yields of `looseSteps`. */
const STEP_BYTES = 64 << 10

/**
 * Parses the JSON of an object whose members over `RAW_BYTES` remain text. The large objects at `within`, one inside
 * the other, are read in the same way. Any other JSON remains text. Throws `SyntaxError` if the text is not JSON, is
 * nested too deeply, or has too many members.
 */
export const parseLoosely = (bytes: Buffer, within: readonly string[] = []): unknown => {
  return completed(looseSteps(bytes, within))
}

/** The result of work in steps, without other work between them. */
export const completed = <T>(steps: Generator<void, T>): T => {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** The same in steps, between which other work can continue. */
export function* looseSteps(bytes: Buffer, within: readonly string[] = []): Generator<void, unknown> {
  if (!isUtf8(bytes)) throw new SyntaxError('Expected UTF-8')
  const start = skipSpace(bytes, 0)
  if (bytes[start] === OPEN_OBJECT) return yield* looseObject(bytes, start, within)
  const check = new JsonCheck(bytes, start)
  while (!check.next(STEP_BYTES)) yield
  demandEnd(bytes, check.at)
  return yield* looseValue(bytes.subarray(start, check.at), RAW_BYTES)
}

/** The object that begins at `start` ends with the bytes, apart from white space. */
function* looseObject(
  bytes: Buffer,
  start: number,
  [inner, ...within]: readonly string[],
): Generator<void, unknown> {
  const members: [string, unknown][] = []
  let left = PARSED_BYTES
  for (const member of membersOf(bytes, start)) {
    yield
    if (!member) continue
    if (members.length === MAX_MEMBERS) throw new SyntaxError(`Expected at most ${MAX_MEMBERS} members`)
    const { key, json } = member
    const most = Math.max(SMALLEST_BYTES, Math.min(RAW_BYTES, left))
    const isInner = key === inner && json.length > most && json[0] === OPEN_OBJECT
    const value = isInner ? yield* looseObject(json, 0, within) : yield* looseValue(json, most)
    if (!(value instanceof RawJson)) left -= json.length
    members.push([key, value])
  }
  return Object.fromEntries(members)
}

/** `most`: bytes of a value that is parsed. */
function* looseValue(json: Buffer, most: number): Generator<void, unknown> {
  if (json.length <= most) return JSON.parse(json.toString()) as unknown
  return new RawJson(yield* inOneLine(json))
}

/** A line break between two tokens would end the line of a server-sent event. */
function* inOneLine(bytes: Buffer): Generator<void, Buffer> {
  if (!bytes.includes(LINE_FEED) && !bytes.includes(CARRIAGE_RETURN)) return bytes
  const copy = Buffer.from(bytes)
  for (let at = 0; at < copy.length; at++) {
    if (copy[at] === LINE_FEED || copy[at] === CARRIAGE_RETURN) copy[at] = SPACE
    if (at % STEP_BYTES === 0) yield
  }
  return copy
}

interface Member {
  readonly key: string
  readonly json: Buffer
}

/** Yields the members of the object that begins at `start` and ends with the bytes; null while it checks a large one. */
function* membersOf(bytes: Buffer, start: number): Generator<Member | null> {
  let at = skipSpace(bytes, start + 1)
  if (bytes[at] === CLOSE_OBJECT) return demandEnd(bytes, at + 1)
  for (;;) {
    if (bytes[at] !== QUOTE) throw unexpected(bytes, at)
    const keyEnd = endOfString(bytes, at)
    const key = JSON.parse(bytes.toString('utf8', at, keyEnd)) as string
    at = skipSpace(bytes, keyEnd)
    if (bytes[at] !== COLON) throw unexpected(bytes, at)
    const from = skipSpace(bytes, at + 1)
    const check = new JsonCheck(bytes, from)
    while (!check.next(STEP_BYTES)) yield null
    yield { key, json: bytes.subarray(from, check.at) }
    at = skipSpace(bytes, check.at)
    if (bytes[at] === CLOSE_OBJECT) return demandEnd(bytes, at + 1)
    if (bytes[at] !== COMMA) throw unexpected(bytes, at)
    at = skipSpace(bytes, at + 1)
  }
}

const demandEnd = (bytes: Buffer, end: number): void => {
  if (skipSpace(bytes, end) < bytes.length) throw unexpected(bytes, end)
}

const CLOSE_OBJECT = 0x7d
