import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32, deflateRawSync } from 'node:zlib'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { unpack } from '../../src/builds/zip.ts'
import { ZIP_LIMITS, type ZipLimits } from '../../src/builds/zipPolicy.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { zipBuild } from '../support/zipBuild.ts'

/** An entry by its raw fields, so that a test can set any of them to a wrong value. */
interface RawEntry {
  readonly name: string | Buffer
  readonly content?: Buffer
  readonly method?: number
  readonly flags?: number
  readonly mode?: number
  readonly size?: number
  readonly crc?: number
  /** The offset that the directory records; default the real one. */
  readonly offset?: number
  readonly localName?: string
}

const rawZip = (entries: readonly RawEntry[], count = entries.length): Buffer => {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const {
    name,
    content = Buffer.from('x'),
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
    const data = method === 8 ? deflateRawSync(content) : content
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

/** Unpacks into a directory; no other file may appear beside it. */
const unpackBytes = async (bytes: Buffer, limits?: Partial<ZipLimits>) => {
  const root = tempDir()
  const dir = join(root, 'in', 'side')
  const zipFile = join(root, 'build.zip')
  mkdirSync(dir, { recursive: true })
  writeFileSync(zipFile, bytes)
  const outcome = await unpack(zipFile, dir, { ...ZIP_LIMITS, ...limits }).then(
    (files) => ({ files, error: undefined }),
    (error: unknown) => ({ files: [], error }),
  )
  const outside = [readdirSync(root).sort().join(), readdirSync(join(root, 'in')).join()]
  assert.equal(outside, ['build.zip,in', 'side'])
  return { dir, ...outcome }
}

const refusalOf = async (bytes: Buffer, limits?: Partial<ZipLimits>): Promise<string> => {
  const { error, files } = await unpackBytes(bytes, limits)
  if (isAppError(error, 'bad_request')) return error.message
  throw new Error(`Expected a refusal, got ${error instanceof Error ? error.message : files.join()}`, {
    cause: error,
  })
}

const good = suite('unpacking a zip')

good('extracts every file, also empty files and directories', async () => {
  const { bytes } = await zipBuild({
    'a/b/c.txt': 'hello',
    'empty.txt': '',
    ['__proto__']: 'plain',
    'ü.txt': 'u',
  })
  const { dir, files, error } = await unpackBytes(bytes)
  assert.is(error, undefined)
  assert.equal(new Set(files), new Set(['__proto__', 'a/b/c.txt', 'empty.txt', 'ü.txt']))
  assert.is(readFileSync(join(dir, 'a/b/c.txt'), 'utf8'), 'hello')
  assert.is(readFileSync(join(dir, 'empty.txt'), 'utf8'), '')
})

good('accepts stored and deflated entries, and directory entries', async () => {
  const content = Buffer.alloc(300_000, 'abc')
  const { dir, error } = await unpackBytes(
    rawZip([
      { name: 'd/', content: Buffer.alloc(0), mode: 0o040755 },
      { name: 'd/s', content },
      { name: 'd/z', content, method: 8 },
    ]),
  )
  assert.is(error, undefined)
  assert.ok(readFileSync(join(dir, 'd/s')).equals(content))
  assert.ok(readFileSync(join(dir, 'd/z')).equals(content))
})

good('reads 10,000 entries', async () => {
  const entries = Array.from({ length: 10_000 }, (_, n) => ({
    name: `d${n % 100}/${n}`,
    content: Buffer.alloc(0),
  }))
  const { files, dir } = await unpackBytes(rawZip(entries))
  assert.is(files.length, 10_000)
  await rm(dir, { recursive: true }) // removed at exit, so many files would look like an open handle
})

good.run()

const bad = suite('a zip that is refused')

const zeros = Buffer.alloc(11 << 20)
const attacks: [string, Buffer, RegExp, Partial<ZipLimits>?][] = [
  ['goes up', rawZip([{ name: '../evil' }]), /invalid relative path: \.\.\/evil/],
  ['goes up further in', rawZip([{ name: 'a/../../evil' }]), /invalid relative path/],
  ['is absolute', rawZip([{ name: '/etc/evil' }]), /absolute path: \/etc\/evil/],
  ['names a drive', rawZip([{ name: 'C:/evil' }]), /absolute path: C:\/evil/],
  ['has backslashes', rawZip([{ name: 'a\\..\\..\\evil' }]), /invalid characters in fileName/],
  ['has a NUL', rawZip([{ name: 'a\0.js' }]), /without control characters.*"a\\u0000\.js"/],
  ['has a control character', rawZip([{ name: 'a\n.js' }]), /without control characters/],
  ['has a colon', rawZip([{ name: 'ab:stream' }]), /without control characters/],
  ['is not UTF-8', rawZip([{ name: Buffer.from([0x61, 0xff, 0xfe]) }]), /without control characters/],
  ['has empty segments', rawZip([{ name: 'a//b' }]), /segments/],
  ['has dot segments', rawZip([{ name: 'a/./b' }]), /segments/],
  ['has no name', rawZip([{ name: '' }]), /segments/],
  ['has a long name', rawZip([{ name: 'n'.repeat(513) }]), /at most 512 bytes/],
  ['is deep', rawZip([{ name: `${'d/'.repeat(32)}f` }]), /at most 32 segments/],
  [
    'is a symbolic link',
    rawZip([{ name: 'link', mode: 0o120777 }]),
    /"link" to be a plain file or directory, got a symbolic link/,
  ],
  ['is a device', rawZip([{ name: 'dev', mode: 0o020666 }]), /a special file/],
  ['is a pipe', rawZip([{ name: 'pipe', mode: 0o010666 }]), /a special file/],
  ['is encrypted', rawZip([{ name: 'secret', flags: 0x801, method: 8 }]), /"secret" not to be encrypted/],
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
    /unpack "a": too many bytes/,
  ],
  [
    'says it is larger',
    rawZip([{ name: 'a', content: Buffer.alloc(10), method: 8, size: 1000 }]),
    /unpack "a": not enough bytes/,
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
for (const [what, bytes, message, limits] of attacks) {
  bad(`if it ${what}`, async () => assert.match(await refusalOf(bytes, limits), message))
}

bad('is judged by its directory, not by the name in a local header', async () => {
  const { dir, files } = await unpackBytes(rawZip([{ name: 'a', localName: '../evil' }]))
  assert.equal(files, ['a'])
  assert.ok(existsSync(join(dir, 'a')))
})

bad.run()

const fuzz = suite('mutants of a zip', { timeoutMs: 60_000 })

fuzz(`are unpacked or refused, and never leave their directory (SVC_TEST_SEED=${SEED})`, async () => {
  const below = randomOf(SEED)
  const { bytes } = await zipBuild({
    'a/b.js': 'export const x = 1\n'.repeat(50),
    'c.ts': 'x',
    'd/e/f.json': '{}',
    'g.bin': Buffer.alloc(5000),
  })
  for (let n = 0; n < 500; n++) {
    const mutant = n % 5 === 0 ? bytes.subarray(0, below(bytes.length)) : Buffer.from(bytes)
    for (let flips = n % 5 === 0 ? 0 : 1 + below(4); flips > 0; flips--) {
      const at =
        below(2) === 0 ? below(mutant.length) : mutant.length - 1 - below(Math.min(mutant.length, 400))
      mutant[at] = (mutant[at] ?? 0) ^ (1 << below(8))
    }
    const { error } = await unpackBytes(mutant)
    if (error && !isAppError(error, 'bad_request'))
      throw new Error(`Expected a refusal (seed ${SEED}, mutant ${n})`, { cause: error })
  }
})

fuzz.run()
