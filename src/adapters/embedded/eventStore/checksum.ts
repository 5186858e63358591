import { crc32 } from 'node:zlib'

/** JSON ignores these characters after a value, so earlier versions read a row with a checksum as well. */
const DIGITS = [' ', '\t', '\n', '\r']
const BITS_PER_DIGIT = 2
const LENGTH = 32 / BITS_PER_DIGIT

/** The digits of each byte. */
const DIGITS_OF = Array.from({ length: 256 }, (_, byte) =>
  [6, 4, 2, 0].map((shift) => DIGITS[(byte >> shift) & 3]).join(''),
)

/** A CRC-32 as white space. */
const digitsOf = (crc: number): string =>
  (DIGITS_OF[crc >>> 24] ?? '') +
  (DIGITS_OF[(crc >>> 16) & 0xff] ?? '') +
  (DIGITS_OF[(crc >>> 8) & 0xff] ?? '') +
  (DIGITS_OF[crc & 0xff] ?? '')

/** The checksum of a row includes its place in the log. */
const placeOf = (first: number, count: number): string => `${first} ${count}`

/**
 * Returns the text of a row: the JSON of its entries and their checksum. The checksum needs no second copy of the text.
 * `count`: of its positions, if events were removed.
 */
export const rowText = (first: number, entries: readonly string[], count = entries.length): string => {
  const [only] = entries
  const joined = only !== undefined && entries.length === 1 ? only : entries.join(',')
  const crc = crc32(']', crc32(joined, crc32(`${placeOf(first, count)}[`)))
  return `[${joined}]${digitsOf(crc)}`
}

/** Whether a row is as it was written. A row of an earlier version has no checksum and counts as intact. */
export const isIntact = (first: number, count: number, text: string): boolean =>
  text.endsWith(']') ||
  text.slice(-LENGTH) === digitsOf(crc32(text.slice(0, -LENGTH), crc32(placeOf(first, count))))
