import { createHook } from 'node:async_hooks'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { unpack } from '../../src/builds/zip.ts'
import { ZIP_LIMITS, type ZipLimits } from '../../src/builds/zipPolicy.ts'
import { hostileZips, rawZip } from '../support/hostileZips.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { zipBuild } from '../support/zipBuild.ts'

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

good(
  'unpacks a small file with much packed data in pieces, so that others are served meanwhile',
  async () => {
    const emptyBlock = Buffer.from([0, 0, 0, 0xff, 0xff]) // stored, and not the last one
    const blocks = Buffer.alloc(7 << 20, emptyBlock).subarray(0, 5 * 1_400_000)
    const content = Buffer.from('x')
    const packed = Buffer.concat([blocks, deflateRawSync(content)])
    const zip = rawZip([{ name: 'a', content, packed, method: 8 }])
    const streams = new Set<number>()
    let pieces = 0
    const hook = createHook({
      init: (id, type) => void (type === 'ZLIB' && streams.add(id)),
      before: (id) => void (streams.has(id) && pieces++),
    }).enable()
    const { dir, error } = await unpackBytes(zip)
    hook.disable()
    assert.is(error, undefined)
    assert.is(readFileSync(join(dir, 'a'), 'utf8'), 'x')
    assert.ok(pieces >= packed.length / (64 << 10), `${pieces} pieces`)
  },
)

good.run()

const bad = suite('a zip that is refused')

for (const [what, bytes, message, limits] of hostileZips) {
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
