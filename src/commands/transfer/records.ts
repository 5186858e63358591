import { AppError } from '../../errors.ts'
import { nestsDeeperThan } from '../../events/jsonDepth.ts'

/** The longest JSON line: a fact with its payload. */
const MAX_LINE_BYTES = 1 << 20
const NEWLINE = 0x0a

/** A line of JSON, and the bytes that follow it. They must be read to the end before the next record. */
export interface TransferRecord {
  readonly line: Readonly<Record<string, unknown>>
  readonly bytes: AsyncGenerator<Buffer>
}

export const lineOf = (value: object): Buffer => Buffer.from(`${JSON.stringify(value)}\n`)

/** Reads records: lines of JSON, where `bytes` is the number of raw bytes that follow the line. */
export async function* recordsIn(content: AsyncIterable<Uint8Array>): AsyncGenerator<TransferRecord> {
  const chunks = content[Symbol.asyncIterator]()
  let known: Buffer = Buffer.alloc(0)
  const more = async (): Promise<boolean> => {
    const next = await chunks.next()
    if (!next.done) known = Buffer.concat([known, next.value])
    return !next.done
  }
  async function* raw(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0;) {
      if (known.length === 0 && !(await more())) throw cut()
      const part = known.subarray(0, left)
      known = known.subarray(part.length)
      left -= part.length
      yield part
    }
  }
  try {
    for (;;) {
      let searched = 0
      let end = known.indexOf(NEWLINE)
      while (end < 0) {
        searched = known.length
        if (searched > MAX_LINE_BYTES) throw tooLong()
        if (!(await more())) {
          if (known.length > 0) throw cut()
          return
        }
        end = known.indexOf(NEWLINE, searched)
      }
      if (end > MAX_LINE_BYTES) throw tooLong()
      const line = parsed(known.toString('utf8', 0, end))
      known = known.subarray(end + 1)
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

/** Levels of nesting in a line: those of event data, within a fact. */
const MAX_DEPTH = 72

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
const tooLong = (): AppError =>
  new AppError('bad_request', `Expected lines of at most ${MAX_LINE_BYTES} bytes`)
