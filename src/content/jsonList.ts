import { createHash } from 'node:crypto'
import { slices } from '../loops/slices.ts'

/** Bytes that are parsed, written or hashed without a look at the clock. An element is not divided. */
const PART_BYTES = 32 << 10
const HASHED_BYTES = 1 << 20

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Parses the JSON of a list. Other work continues meanwhile. Rejects with `SyntaxError` for any other JSON. */
export const parseList = async (bytes: Buffer): Promise<unknown[]> => {
  const elements: unknown[] = []
  for (const { from, to } of partsOf(bytes)) {
    const wait = slices.take()
    if (wait) await wait
    for (const element of JSON.parse(`[${bytes.toString('utf8', from, to)}]`) as unknown[])
      elements.push(element)
  }
  return elements
}

/** Yields the places of some elements at a time, without the commas between them. */
function* partsOf(bytes: Buffer): Generator<{ readonly from: number; readonly to: number }> {
  const end = bytes.lastIndexOf(CLOSE_ARRAY)
  const start = bytes.indexOf(OPEN_ARRAY)
  const isList =
    start >= 0 &&
    end > start &&
    `${bytes.toString('utf8', 0, start)}${bytes.toString('utf8', end + 1)}`.trim() === ''
  if (!isList) throw new SyntaxError('Expected a list in JSON')
  let [from, level] = [start + 1, 0]
  for (let at = from; at < end; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) at = endOfText(bytes, at)
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) level++
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) level--
    else if (byte === COMMA && level === 0 && at - from >= PART_BYTES) {
      yield { from, to: at }
      from = at + 1
    }
  }
  yield { from, to: end }
}

const endOfText = (bytes: Buffer, start: number): number => {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at
}

/** Converts a list to JSON. Other work continues meanwhile. */
export const listBytes = async (list: readonly unknown[]): Promise<Buffer> => {
  const parts: Buffer[] = []
  let part = '['
  await slices.each(list.entries(), ([n, element]) => {
    part += `${n === 0 ? '' : ','}${JSON.stringify(element)}`
    if (part.length < PART_BYTES) return
    parts.push(Buffer.from(part))
    part = ''
  })
  return Buffer.concat([...parts, Buffer.from(`${part}]`)])
}

/** The SHA-256 of bytes, in hex. Other work continues meanwhile. */
export const sha256Of = async (bytes: Buffer): Promise<string> => {
  const hash = createHash('sha256')
  for (let at = 0; at < bytes.length; at += HASHED_BYTES) {
    const wait = slices.take()
    if (wait) await wait
    hash.update(bytes.subarray(at, at + HASHED_BYTES))
  }
  return hash.digest('hex')
}
