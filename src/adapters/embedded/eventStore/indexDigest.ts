import { crc32 } from 'node:zlib'

/** Sums stay exact below this number. */
const MODULUS = 2 ** 48
const PRIME = 4_294_967_291

/**
 * A sum over the entries of an index. It does not depend on their order, so each entry is added when it is written, and
 * all of them are added again to check the file.
 */
export const withEntry = (sum: number, stream: string, revision: number, position: number): number =>
  (sum + crc32(stream, (revision * 31 + position) % PRIME)) % MODULUS

/** The sum without an entry that it contains. */
export const withoutEntry = (sum: number, stream: string, revision: number, position: number): number =>
  (sum - withEntry(0, stream, revision, position) + MODULUS) % MODULUS

/** The number that is stored to check the sum and the position up to which the log is indexed. */
export const checkOf = (sum: number, indexed: number): number => crc32(`${sum} ${indexed}`)
