import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
/** The beginning of a WAL whose checksums are computed from little-endian words; plus 1: big-endian. */
const MAGIC = 0x377f0682

/** The checksum of a WAL, which continues from frame to frame (SQLite file format, 4.2). */
interface Sums {
  a: number
  b: number
}

/**
 * Counts the commits behind the first damaged frame of a WAL, which SQLite drops without a report. A crash leaves at most
 * one such commit, because each is synced before the next is written. Two or more were durable, so they are lost by damage.
 */
export const lostCommits = (wal: string): number => {
  const file = openSync(wal, 'r')
  try {
    const { size } = fstatSync(file)
    const header = Buffer.alloc(HEADER_BYTES)
    if (size < HEADER_BYTES || readSync(file, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return 0
    const magic = header.readUInt32BE(0)
    if (magic !== MAGIC && magic !== MAGIC + 1) return 0
    const isBigEndian = magic === MAGIC + 1
    const sums: Sums = { a: 0, b: 0 }
    add(sums, header.subarray(0, 24), isBigEndian)
    if (!isSumAt(sums, header, 24)) return 0 // a crash during its replacement: the frames are in the database
    const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(8)
    const frame = Buffer.alloc(frameBytes)
    let commits = 0
    let isWhole = true
    for (let at = HEADER_BYTES; at + frameBytes <= size; at += frameBytes) {
      const bytes = isWhole ? frameBytes : FRAME_HEADER_BYTES
      if (readSync(file, frame, 0, bytes, at) < bytes) break
      const isOfNow = frame.compare(header, 16, 24, 8, 16) === 0
      if (isWhole && isOfNow) {
        add(sums, frame.subarray(0, 8), isBigEndian)
        add(sums, frame.subarray(FRAME_HEADER_BYTES), isBigEndian)
      }
      isWhole &&= isOfNow && isSumAt(sums, frame, 16)
      if (!isWhole && isOfNow && frame.readUInt32BE(4) !== 0) commits++
    }
    return commits > 1 ? commits : 0
  } finally {
    closeSync(file)
  }
}

const add = (sums: Sums, bytes: Buffer, isBigEndian: boolean): void => {
  let { a, b } = sums
  for (let at = 0; at < bytes.length; at += 8) {
    a = (a + (isBigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at)) + b) >>> 0
    b = (b + (isBigEndian ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4)) + a) >>> 0
  }
  Object.assign(sums, { a, b })
}

const isSumAt = ({ a, b }: Sums, bytes: Buffer, at: number): boolean =>
  bytes.readUInt32BE(at) === a && bytes.readUInt32BE(at + 4) === b
