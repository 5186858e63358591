import { AppError } from '../errors.ts'

/** A row of the log as bytes: its text is UTF-8. */
export interface RowFrame {
  readonly first: number
  readonly count: number
  readonly text: Buffer
}

/** The header of a frame has at most this many characters: three numbers. */
const MAX_HEADER = 64
/** Bytes of a row; a fact is far smaller. More means that the file is no log. */
const MAX_ROW_BYTES = 256 << 20
const NEWLINE = 0x0a

/** A row as a frame: `<first> <count> <bytes>`, a newline, the text, a newline. */
export const frameOf = ({
  first,
  count,
  text,
}: {
  first: number
  count: number
  text: string | Buffer
}): Buffer =>
  Buffer.concat([
    Buffer.from(`${first} ${count} ${Buffer.byteLength(text)}\n`),
    Buffer.isBuffer(text) ? text : Buffer.from(text),
    Buffer.of(NEWLINE),
  ])

/** Reads frames from bytes in any chunks. Rejects with `bad_request` for bytes that are no frames, or that end early. */
export async function* framesIn(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<RowFrame> {
  let known: Buffer = Buffer.alloc(0)
  let arrived: Uint8Array[] = []
  let arrivedBytes = 0
  let wanted = 1
  for await (const chunk of bytes) {
    arrived.push(chunk)
    arrivedBytes += chunk.length
    if (known.length + arrivedBytes < wanted) continue
    known = Buffer.concat([known, ...arrived])
    arrived = []
    arrivedBytes = 0
    let at = 0
    for (;;) {
      const header = headerAt(known, at)
      wanted = header === null ? 1 : header.end - at
      if (header === null || known.length < header.end) break
      const { first, count, begin, end } = header
      if (known[end - 1] !== NEWLINE) throw noFrames(first)
      yield { first, count, text: known.subarray(begin, end - 1) }
      at = end
    }
    known = known.subarray(at)
  }
  if (known.length + arrivedBytes > 0)
    throw new AppError('bad_request', 'the rows of the log end in the middle')
}

interface Header {
  readonly first: number
  readonly count: number
  /** The place of the text, and the place after its newline. */
  readonly begin: number
  readonly end: number
}

const headerAt = (bytes: Buffer, at: number): Header | null => {
  const newline = bytes.indexOf(NEWLINE, at)
  if (newline < 0 && bytes.length - at <= MAX_HEADER) return null
  const text = newline - at > MAX_HEADER || newline < 0 ? '' : bytes.toString('latin1', at, newline)
  const [, first = '', count = '', size = ''] = /^(\d{1,15}) (\d{1,9}) (\d{1,9})$/.exec(text) ?? []
  if (size === '' || Number(size) > MAX_ROW_BYTES || Number(first) < 1 || Number(count) < 1)
    throw noFrames(null)
  const begin = newline + 1
  return { first: Number(first), count: Number(count), begin, end: begin + Number(size) + 1 }
}

const noFrames = (first: number | null): AppError =>
  new AppError(
    'bad_request',
    `expected rows of the log, got other bytes${first === null ? '' : ` after position ${first}`}`,
  )
