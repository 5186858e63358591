import { crc32, deflateRawSync } from 'node:zlib'
import type { ZipLimits } from '../../src/builds/zipPolicy.ts'

/** An entry by its raw fields, so that a test can set any of them to a wrong value. */
export interface RawEntry {
  readonly name: string | Buffer
  readonly content?: Buffer
  /** The content as it is stored; default: packed by the method. */
  readonly packed?: Buffer
  readonly method?: number
  readonly flags?: number
  readonly mode?: number
  readonly size?: number
  readonly crc?: number
  /** The offset that the directory records; default the real one. */
  readonly offset?: number
  readonly localName?: string
}

export const rawZip = (entries: readonly RawEntry[], count = entries.length): Buffer => {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const {
    name,
    content = Buffer.from('x'),
    packed,
    method = 0,
    flags = 0x800,
    mode = 0o100644,
    size,
    crc,
    offset,
    localName,
  } of entries) {
    const nameBytes = Buffer.from(name)
    const localBytes = Buffer.from(localName ?? name)
    const data = packed ?? (method === 8 ? deflateRawSync(content) : content)
    const local = Buffer.alloc(30)
    local.writeUInt32LE(0x04034b50, 0)
    local.writeUInt16LE(localBytes.length, 26)
    const central = Buffer.alloc(46)
    central.writeUInt32LE(0x02014b50, 0)
    central.writeUInt16LE((3 << 8) | 20, 4)
    central.writeUInt16LE(flags, 8)
    central.writeUInt16LE(method, 10)
    central.writeUInt32LE(crc ?? crc32(content), 16)
    central.writeUInt32LE(data.length, 20)
    central.writeUInt32LE(size ?? content.length, 24)
    central.writeUInt16LE(nameBytes.length, 28)
    central.writeUInt32LE((mode << 16) >>> 0, 38)
    central.writeUInt32LE(offset ?? at, 42)
    locals.push(local, localBytes, data)
    directory.push(central, nameBytes)
    at += 30 + localBytes.length + data.length
  }
  const end = Buffer.alloc(22)
  const directoryBytes = Buffer.concat(directory)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(count, 8)
  end.writeUInt16LE(count, 10)
  end.writeUInt32LE(directoryBytes.length, 12)
  end.writeUInt32LE(at, 16)
  return Buffer.concat([...locals, directoryBytes, end])
}

const zeros = Buffer.alloc(11 << 20)
/** Archives that lead out, lie or explode: what each does, its bytes, the refusal, and the limits for which it is made. */
export const hostileZips: readonly [string, Buffer, RegExp, Partial<ZipLimits>?][] = [
  ['goes up', rawZip([{ name: '../evil' }]), /without empty, "\." and "\.\." segments, got "\.\.\/evil"/],
  ['goes up further in', rawZip([{ name: 'a/../../evil' }]), /without empty, "\." and "\.\." segments/],
  ['is absolute', rawZip([{ name: '/etc/evil' }]), /a name relative to the build, got "\/etc\/evil"/],
  ['names a drive', rawZip([{ name: 'C:/evil' }]), /a name relative to the build, got "C:\/evil"/],
  [
    'has backslashes',
    rawZip([{ name: 'a\\..\\..\\evil' }]),
    /"\/" between its segments, not "\\", got "a\\\\/,
  ],
  ['has a NUL', rawZip([{ name: 'a\0.js' }]), /without control characters.*"a\\u0000\.js"/],
  ['has a control character', rawZip([{ name: 'a\n.js' }]), /without control characters/],
  ['has a colon', rawZip([{ name: 'ab:stream' }]), /without control characters/],
  ['is not UTF-8', rawZip([{ name: Buffer.from([0x61, 0xff, 0xfe]) }]), /without control characters/],
  ['has empty segments', rawZip([{ name: 'a//b' }]), /segments/],
  ['has dot segments', rawZip([{ name: 'a/./b' }]), /segments/],
  ['has no name', rawZip([{ name: '' }]), /segments/],
  ['has a long name', rawZip([{ name: 'n'.repeat(513) }]), /at most 512 bytes/],
  ['has a long segment', rawZip([{ name: `d/${'ü'.repeat(128)}` }]), /segments of at most 255 bytes/],
  ['has a long folder', rawZip([{ name: `${'n'.repeat(256)}/f` }]), /segments of at most 255 bytes/],
  ['is deep', rawZip([{ name: `${'d/'.repeat(32)}f` }]), /at most 32 segments/],
  [
    'is a symbolic link',
    rawZip([{ name: 'link', mode: 0o120777 }]),
    /"link" to be a plain file or directory, got a symbolic link/,
  ],
  [
    'is a directory by its name alone',
    rawZip([{ name: 'd/', content: Buffer.alloc(0) }]),
    /"d\/" to be a plain file or directory, got a directory by its name and a file by its mode/,
  ],
  [
    'is a directory by its mode alone',
    rawZip([{ name: 'd', mode: 0o040755 }]),
    /"d" to be a plain file or directory, got a file by its name and a directory by its mode/,
  ],
  ['is a device', rawZip([{ name: 'dev', mode: 0o020666 }]), /a special file/],
  ['is a pipe', rawZip([{ name: 'pipe', mode: 0o010666 }]), /a special file/],
  ['is encrypted', rawZip([{ name: 'secret', flags: 0x801, method: 8 }]), /"secret" not to be encrypted/],
  [
    'is encrypted and stored',
    rawZip([{ name: 'secret', flags: 0x801, size: 100 }]),
    /"secret" not to be encrypted/,
  ],
  [
    'says that a stored file is larger',
    rawZip([{ name: 'a', size: 100 }]),
    /unpack "a": Expected 100 bytes, got 1/,
  ],
  [
    'is packed by another method',
    rawZip([{ name: 'lzma', method: 14 }]),
    /"lzma" to be stored or deflated, got method 14/,
  ],
  ['comes twice', rawZip([{ name: 'a.js' }, { name: 'a.js' }]), /unique names, got "a\.js" again/],
  ['comes twice but for case', rawZip([{ name: 'a.js' }, { name: 'A.JS' }]), /unique names/],
  ['comes twice but for normalization', rawZip([{ name: 'é' }, { name: 'e\u0301' }]), /unique names/],
  ['is a file and a directory', rawZip([{ name: 'a' }, { name: 'a/b' }]), /unique names/],
  ['is a directory and a file', rawZip([{ name: 'a/b' }, { name: 'A' }]), /unique names/],
  ['shares bytes', rawZip([{ name: 'a' }, { name: 'b', offset: 0 }]), /share no bytes/],
  ['has a wrong checksum', rawZip([{ name: 'a', crc: 1 }]), /unpack "a": Expected the checksum 1/],
  [
    'has a wrong checksum and no bytes',
    rawZip([{ name: 'a', content: Buffer.alloc(0), crc: 1 }]),
    /checksum/,
  ],
  [
    'says it is smaller',
    rawZip([{ name: 'a', content: Buffer.alloc(1000), method: 8, size: 10 }]),
    /unpack "a": Expected \d+ bytes, got more/,
  ],
  [
    'says it is larger',
    rawZip([{ name: 'a', content: Buffer.alloc(10), method: 8, size: 1000 }]),
    /unpack "a": Expected \d+ bytes, got \d+/,
  ],
  [
    'is a bomb',
    rawZip([{ name: 'bomb', content: zeros, method: 8 }]),
    /"bomb" to be compressed at most 200 to 1/,
  ],
  [
    'is too large',
    rawZip([{ name: 'a', content: Buffer.alloc(20) }]),
    /"a" to have at most 10 bytes, got 20/,
    { fileBytes: 10 },
  ],
  [
    'is too large in all',
    rawZip([
      { name: 'a', content: Buffer.alloc(8) },
      { name: 'b', content: Buffer.alloc(8) },
    ]),
    /at most 10 bytes in total, exceeded at "b"/,
    { totalBytes: 10 },
  ],
  [
    'expands too much as a whole',
    rawZip(
      Array.from({ length: 40 }, (_, n) => ({
        name: `${n}.js`,
        content: zeros.subarray(0, 1 << 20),
        method: 8,
      })),
    ),
    /archive to expand at most 100 to 1, got \d+ bytes for 41943040 on the disk/,
  ],
  [
    'expands to many small files and directories',
    rawZip([{ name: 'a/1' }, { name: 'b/2' }]),
    /archive to expand at most 10 to 1, got \d+ bytes for 16384 on the disk/,
    { diskRatio: 10, diskRatioFrom: 16_000 },
  ],
  [
    'implies too many directories',
    rawZip(Array.from({ length: 1000 }, (_, n) => ({ name: `${n}${'/d'.repeat(30)}/f` }))),
    /at most 20000 files and directories, exceeded at "\d+\/d/,
  ],
  [
    'has too many entries',
    rawZip([{ name: 'a' }, { name: 'b' }, { name: 'c' }]),
    /at most 2 entries/,
    { entries: 2 },
  ],
  ['counts more entries than it has', rawZip([{ name: 'a' }], 3), /readable/],
  [
    'has a directory with bytes',
    rawZip([{ name: 'd/', mode: 0o040755 }]),
    /directory "d\/" to have no bytes/,
  ],
  ['points past the end', rawZip([{ name: 'a', offset: 1 << 20 }]), /unpack "a"/],
  ['is empty', Buffer.alloc(0), /Expected a zip archive/],
  ['is text', Buffer.from('#!/bin/sh\necho hello'), /Expected a zip archive/],
]
