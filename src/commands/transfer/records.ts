import { createHash, type Hash } from 'node:crypto'
import { AppError, isAppError } from '../../errors.ts'
import { MAX_JSON_DEPTH, nestsDeeperThan } from '../../events/jsonDepth.ts'

/** The longest JSON line: a fact with its payload. */
const MAX_LINE_BYTES = 1 << 20
const NEWLINE = 0x0a

/** A line of JSON, and the bytes that follow it. They must be read to the end before the next record. */
export interface TransferRecord {
  readonly line: Readonly<Record<string, unknown>>
  readonly bytes: AsyncGenerator<Buffer>
}

/** The last field of a line: the SHA-256 of everything before it, without the sums and line breaks. */
const SUM = /,"sum":"([0-9a-f]{64})"\}$/
const SUM_CHARS = ',"sum":""}'.length + 64

const sumOf = (digest: Hash): string => digest.copy().digest('hex')

/**
 * Writes records, each with a sum over all before, so that an import finds damage before it stores anything of it. The bytes of a
 * blob are followed by a line of their own.
 */
export class RecordWriter {
  readonly #digest = createHash('sha256')

  line(value: object): Buffer {
    const text = JSON.stringify(value)
    this.#digest.update(text)
    return Buffer.from(`${text.slice(0, -1)},"sum":"${sumOf(this.#digest)}"}\n`)
  }

  /** Yields the records of a blob. Returns the SHA-256 of its bytes, and throws `conflict` if there are not `size` of them. */
  async *blob(
    { key, size }: { readonly key: string; readonly size: number },
    content: AsyncIterable<Buffer>,
  ): AsyncGenerator<Buffer, string> {
    yield this.line({ blob: key, bytes: size })
    const digest = createHash('sha256')
    let sent = 0
    for await (const chunk of content) {
      sent += chunk.length
      digest.update(chunk)
      yield this.bytes(chunk)
    }
    if (sent !== size)
      throw new AppError('conflict', `Expected ${size} bytes of the blob ${key}, got ${sent}`)
    if (size > 0) yield this.endOfBytes()
    return digest.digest('hex')
  }

  bytes(chunk: Buffer): Buffer {
    this.#digest.update(chunk)
    return chunk
  }

  /** The line after the bytes of a blob. */
  endOfBytes(): Buffer {
    return this.line({ bytes_end: true })
  }
}

/**
 * Reads records: lines of JSON, where `bytes` is the number of raw bytes that follow the line. If the first line has a sum, all must
 * have one, and each is compared before its record is used, also that after the bytes.
 */
export async function* recordsIn(content: AsyncIterable<Uint8Array>): AsyncGenerator<TransferRecord> {
  const chunks = content[Symbol.asyncIterator]()
  let known: Buffer = Buffer.alloc(0)
  let [read, isSummed] = [0, false]
  const digest = createHash('sha256')
  const take = (size: number): Buffer => {
    const part = known.subarray(0, size)
    known = known.subarray(part.length)
    read += part.length
    return part
  }
  const more = async (): Promise<boolean> => {
    const next = await chunks.next()
    if (!next.done) known = Buffer.concat([known, next.value])
    return !next.done
  }
  /** Null at the end of the file. */
  const lineAfter = async (): Promise<TransferRecord['line'] | null> => {
    const begin = read
    let searched = 0
    let end = known.indexOf(NEWLINE)
    while (end < 0) {
      searched = known.length
      if (searched > MAX_LINE_BYTES) throw tooLong()
      if (!(await more())) {
        if (known.length > 0) throw cut()
        return null
      }
      end = known.indexOf(NEWLINE, searched)
    }
    if (end > MAX_LINE_BYTES) throw tooLong()
    const text = take(end + 1).toString('utf8', 0, end)
    const sum = SUM.exec(text.slice(-SUM_CHARS))?.[1]
    if (begin === 0) isSummed = sum !== undefined
    if (isSummed) {
      digest.update(sum === undefined ? text : `${text.slice(0, -SUM_CHARS)}}`)
      if (sum !== sumOf(digest)) throw damagedAt(begin)
    }
    return parsed(text)
  }
  async function* raw(size: number): AsyncGenerator<Buffer> {
    const begin = read
    for (let left = size; left > 0;) {
      if (known.length === 0 && !(await more())) throw cut()
      const part = take(left)
      left -= part.length
      if (isSummed) digest.update(part)
      yield part
    }
    if (!isSummed || size === 0) return
    const end = await lineAfter().catch((error: unknown) => {
      throw isAppError(error) && error.data['damaged'] === true ? damagedAt(begin) : error
    })
    if (end === null) throw cut()
    if (end['bytes_end'] !== true) throw damagedAt(begin)
  }
  try {
    for (let line = await lineAfter(); line !== null; line = await lineAfter()) {
      const bytes = raw(sizeIn(line))
      yield { line, bytes }
      for await (const _ of bytes); // what the reader has left
    }
  } finally {
    await chunks.return?.()
  }
}

const sizeIn = ({ bytes = 0 }: TransferRecord['line']): number => {
  if (Number.isSafeInteger(bytes) && Number(bytes) >= 0) return Number(bytes)
  throw new AppError('bad_request', 'bytes: expected a count')
}

/** Levels of nesting in a line: those of a value of a function, within a fact. */
const MAX_DEPTH = MAX_JSON_DEPTH + 8

const parsed = (text: string): TransferRecord['line'] => {
  if (nestsDeeperThan(MAX_DEPTH, text))
    throw new AppError('bad_request', `Expected at most ${MAX_DEPTH} levels of nesting in a line`)
  try {
    const value = JSON.parse(text) as unknown
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as TransferRecord['line']
  } catch {} // reported below
  throw new AppError(
    'bad_request',
    `Expected lines of JSON from svc export, got ${JSON.stringify(text.slice(0, 40))}`,
  )
}

const cut = (): AppError =>
  new AppError('bad_request', 'The file ends in the middle: export the environment again')
const damagedAt = (byte: number): AppError =>
  new AppError(
    'bad_request',
    `The file is damaged after byte ${byte}: copy it again, or export the environment again`,
    { data: { damaged: true } },
  )
const tooLong = (): AppError =>
  new AppError('bad_request', `Expected lines of at most ${MAX_LINE_BYTES} bytes`)
