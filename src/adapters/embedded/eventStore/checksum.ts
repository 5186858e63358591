import { crc32 } from 'node:zlib'

/** JSON ignores these characters after a value, so earlier versions read a row with a checksum as well. */
const DIGITS = [' ', '\t', '\n', '\r']
const BITS_PER_DIGIT = 2
const LENGTH = 32 / BITS_PER_DIGIT

/** The digits of each byte. */
const DIGITS_OF = Array.from({ length: 256 }, (_, byte) =>
  [6, 4, 2, 0].map((shift) => DIGITS[(byte >> shift) & 3]).join(''),
)

/** The CRC-32 of the JSON text of a row and of its place in the log, as white space. */
const checksumOf = (first: number, count: number, json: string): string => {
  const crc = crc32(json, crc32(`${first} ${count}`))
  return (
    (DIGITS_OF[crc >>> 24] ?? '') +
    (DIGITS_OF[(crc >>> 16) & 0xff] ?? '') +
    (DIGITS_OF[(crc >>> 8) & 0xff] ?? '') +
    (DIGITS_OF[crc & 0xff] ?? '')
  )
}

/** Appends the checksum to the JSON text of a row. */
export const withChecksum = (first: number, count: number, json: string): string =>
  json + checksumOf(first, count, json)

/** Whether a row is as it was written. A row of an earlier version has no checksum and counts as intact. */
export const isIntact = (first: number, count: number, text: string): boolean =>
  text.endsWith(']') || text.slice(-LENGTH) === checksumOf(first, count, text.slice(0, -LENGTH))
