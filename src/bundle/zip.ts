import { crc32, deflateRawSync } from 'node:zlib'

/** A file of a build, compressed. */
export interface PackedFile {
  readonly path: string
  readonly size: number
  readonly crc: number
  readonly packed: Uint8Array
}

const DEFLATED = 8
const VERSION = 20
const UTF8_NAMES = 1 << 11
/** 1980-01-01, the first day of the format. */
const DATE = (1 << 5) | 1

export const packFile = (path: string, content: Uint8Array): PackedFile => ({
  path,
  size: content.length,
  crc: crc32(content),
  packed: deflateRawSync(content),
})

/** A zip of these files. Equal files give equal bytes: entries are sorted and have no time of their own. */
export const zipOf = (files: readonly PackedFile[]): Buffer => {
  const sorted = files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  const parts: Uint8Array[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const file of sorted) {
    const name = Buffer.from(file.path)
    const fields = fieldsOf(file, name.length)
    const local = Buffer.concat([signature(0x04034b50), fields, name])
    directory.push(Buffer.concat([signature(0x02014b50), short(VERSION), fields, placeOf(offset), name]))
    parts.push(local, file.packed)
    offset += local.length + file.packed.length
  }
  const size = directory.reduce((sum, entry) => sum + entry.length, 0)
  return Buffer.concat([...parts, ...directory, endOf(sorted.length, size, offset)])
}

/** The fields that the header of an entry and its line in the directory have in common. */
const fieldsOf = ({ size, crc, packed }: PackedFile, nameBytes: number): Buffer =>
  Buffer.concat([
    ...[VERSION, UTF8_NAMES, DEFLATED, 0, DATE].map(short),
    ...[crc, packed.length, size].map(long),
    ...[nameBytes, 0].map(short),
  ])

/** No comment, first disk, no attributes, and the place of the entry. */
const placeOf = (offset: number): Buffer => Buffer.concat([...[0, 0, 0].map(short), ...[0, offset].map(long)])

const endOf = (entries: number, size: number, offset: number): Buffer =>
  Buffer.concat([
    signature(0x06054b50),
    ...[0, 0, entries, entries].map(short),
    ...[size, offset].map(long),
    short(0),
  ])

const short = (value: number): Buffer => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}

const long = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const signature = long
