import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import * as assert from 'uvu/assert'
import { BuildCache, type BuildCacheDeps } from '../../src/builds/buildCache.ts'
import { CacheShares } from '../../src/builds/cacheShares.ts'
import { AppError } from '../../src/errors.ts'
import { buildKey } from '../../src/ports/runtime.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { tempDir } from '../support/tempDir.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { buildBlobs } from '../sandbox/harness.ts'

const refOf = (hash: string, env_id = 'env') => ({ env_id, project_id: 'p', build_id: 'b', hash })

const setUp = async (
  prepare: (dir: string) => Promise<void> = async () => {},
  { maxBytes = 1 << 30, isUsed = (_: string): boolean => false } = {},
) => {
  const blobs = buildBlobs()
  const zip = await zipBuild({ 'a.js': 'export const f = () => 1' })
  blobs.add(zip)
  const build = refOf(zip.hash)
  const cacheDir = tempDir()
  const ownerOf = (env_id: string) => env_id
  const open = (zips: BuildCacheDeps['blobs'] = blobs) =>
    new BuildCache({ blobs: zips, cacheDir, prepare, maxBytes, ownerOf, isUsed })
  const file = join(tempDir(), 'upload.zip')
  writeFileSync(file, zip.bytes)
  /** Unpacked builds and leftovers on the disk. */
  const left = () => [readdirSync(join(cacheDir, 'builds')).sort(), readdirSync(join(cacheDir, 'tmp'))]
  /** Resolves when the next process may use the unpacked builds. */
  const durable = () => until(() => readdirSync(join(cacheDir, 'unsynced')).length === 0)
  return { blobs, bytes: zip.bytes, build, cacheDir, file, left, open, durable, cache: open() }
}

/** Adds a build with this much on the disk to the blobs. */
const addBuild = async (blobs: ReturnType<typeof buildBlobs>, name: string, kib: number, env_id: string) => {
  const zip = await zipBuild({ [`${name}.bin`]: randomBytes(kib << 10) })
  blobs.add(zip)
  return refOf(zip.hash, env_id)
}

const codeOf = async (work: Promise<unknown>): Promise<unknown> => {
  try {
    await work
    return 'resolved'
  } catch (error) {
    return (error as { code?: string }).code ?? (error as Error).message
  }
}

const cache = suite('the build cache')

cache('fetches a build once for concurrent callers', async () => {
  const { blobs, build, cache } = await setUp()
  const dirs = await Promise.all([cache.ensure(build), cache.ensure(build), cache.ensure(build)])
  assert.is(new Set(dirs).size, 1)
  assert.is(await cache.ensure(build), dirs[0])
  assert.is(blobs.gets, 1)
  assert.ok(existsSync(join(dirs[0] ?? '', 'a.js')))
})

cache(
  'fetches a build from its own zip while that of another project with equal bytes is missing',
  async () => {
    const { build, bytes, open } = await setUp()
    const other = { ...build, env_id: 'other', project_id: 'q', build_id: 'c' }
    const asked = Promise.withResolvers<void>()
    const cache = open({
      get: async (key) => {
        if (key === buildKey(build)) return Readable.from([bytes])
        await asked.promise
        throw new AppError('not_found', `No blob ${key}`)
      },
    })
    const missing = cache.ensure(other)
    const own = cache.ensure(build)
    asked.resolve()
    assert.equal([await codeOf(missing), await codeOf(own)], ['unavailable', 'resolved'])
  },
)

cache('uses the unpacked build of an earlier process, once its files are durable', async () => {
  const { blobs, build, cache, durable, open } = await setUp()
  const dir = await cache.ensure(build)
  await durable()
  assert.is(await open().ensure(build), dir)
  assert.is(blobs.gets, 1)
})

cache('unpacks a build again whose files an earlier process may not have stored', async () => {
  const { blobs, build, cache, cacheDir, durable, open } = await setUp()
  const dir = await cache.ensure(build)
  await durable()
  writeFileSync(join(cacheDir, 'unsynced', `${build.hash}.left`), '') // its power was cut before
  assert.is(await open().ensure(build), dir)
  assert.is(blobs.gets, 2)
})

cache('removes everything when it fails, and can be repeated', async () => {
  let fails = true
  const { build, left, cache } = await setUp(async () => {
    if (fails) throw new Error('not now')
  })
  assert.is(await codeOf(cache.ensure(build)), 'not now')
  assert.equal(left(), [[], []])
  fails = false
  assert.is(await codeOf(cache.ensure(build)), 'resolved')
})

cache('removes leftovers of a process that died, at the start', async () => {
  const { cacheDir, open } = await setUp()
  mkdirSync(join(cacheDir, 'tmp', 'killed', 'files'), { recursive: true })
  writeFileSync(join(cacheDir, 'tmp', 'killed', 'files', 'torn'), 'x')
  open().open()
  await until(() => existsSync(join(cacheDir, 'builds')) && readdirSync(join(cacheDir, 'tmp')).length === 0)
})

cache('reports bytes that do not match the hash', async () => {
  const { blobs, bytes, cache } = await setUp()
  blobs.add({ hash: 'b'.repeat(64), bytes })
  assert.is(await codeOf(cache.ensure(refOf('b'.repeat(64)))), 'unavailable')
})

cache('reports a missing zip and an invalid hash', async () => {
  const { cache } = await setUp()
  assert.is(await codeOf(cache.ensure(refOf('c'.repeat(64)))), 'unavailable')
  assert.is(await codeOf(cache.ensure(refOf('../../etc'))), 'bad_request')
})

cache.run()

const admitted = suite('an upload in the build cache')

admitted('is kept for its runs when it is accepted', async () => {
  const { blobs, build, cache, file, left } = await setUp()
  const { files } = await cache.admit(build, file, async (candidate) => ({
    ok: true,
    files: candidate.files,
  }))
  assert.equal(files, ['a.js'])
  assert.equal(left(), [[build.hash], []])
  await cache.ensure(build)
  assert.is(blobs.gets, 0)
})

admitted('leaves nothing when it is refused, fails or is abandoned', async () => {
  const { build, cache, file, left } = await setUp()
  assert.equal(await cache.admit(build, file, async () => ({ ok: false })), { ok: false })
  assert.equal(left(), [[], []])
  const failing = cache.admit(build, file, () => Promise.reject(new Error('broke')))
  assert.is(await codeOf(failing), 'broke')
  assert.equal(left(), [[], []])
  const gone = AbortSignal.abort(new Error('left'))
  assert.is(await codeOf(cache.admit(build, file, async () => ({ ok: true }), { signal: gone })), 'left')
  assert.equal(left(), [[], []])
})

admitted('keeps an earlier build with the same bytes when it is refused', async () => {
  const { build, cache, file, left } = await setUp()
  await cache.ensure(build)
  await cache.admit(build, file, async () => ({ ok: false }))
  assert.equal(left(), [[build.hash], []])
})

admitted.run()

const bound = suite('the bound of the build cache')

bound('removes the least recently used build, and unpacks it again when it is needed', async () => {
  const { blobs, cache, left } = await setUp(undefined, { maxBytes: 250 << 10 })
  const builds = [await addBuild(blobs, 'a', 100, 'env'), await addBuild(blobs, 'b', 100, 'env')] as const
  for (const build of builds) await cache.ensure(build)
  await cache.ensure(builds[0])
  const third = await addBuild(blobs, 'c', 100, 'env')
  await cache.ensure(third)
  assert.equal(left(), [[builds[0].hash, third.hash].sort(), []])
  assert.ok(existsSync(await cache.ensure(builds[1])))
})

bound('keeps builds with children, also beyond the limit', async () => {
  const used = new Set<string>()
  const { blobs, cache, left } = await setUp(undefined, { maxBytes: 1, isUsed: (hash) => used.has(hash) })
  const [a, b] = [await addBuild(blobs, 'a', 10, 'env'), await addBuild(blobs, 'b', 10, 'env')]
  used.add(a.hash)
  await cache.ensure(a)
  await cache.ensure(b)
  await cache.forget(a.hash)
  assert.equal(left(), [[a.hash, b.hash].sort(), []])
  used.clear()
  await cache.forget(a.hash)
  assert.equal(left(), [[b.hash], []])
})

bound('counts the builds of an earlier process', async () => {
  const { blobs, cache, durable, open, left } = await setUp(undefined, { maxBytes: 150 << 10 })
  const [a, b] = [await addBuild(blobs, 'a', 100, 'env'), await addBuild(blobs, 'b', 100, 'env')]
  await cache.ensure(a)
  await durable()
  await open().ensure(b)
  assert.equal(left(), [[b.hash], []])
})

bound('counts the builds of an earlier process beside one that is removed meanwhile', async () => {
  const { blobs, cache, cacheDir, durable, open, left } = await setUp(undefined, { maxBytes: 150 << 10 })
  const [a, b] = [await addBuild(blobs, 'a', 100, 'env'), await addBuild(blobs, 'b', 100, 'env')]
  await cache.ensure(a)
  await durable()
  symlinkSync(join(cacheDir, 'gone'), join(cacheDir, 'builds', '0')) // it is listed, and cannot be read
  await open().ensure(b)
  assert.equal(left(), [['0', b.hash], []])
})

bound('removes what is not needed, also of an earlier process, but no build with children', async () => {
  const used = new Set<string>()
  const { blobs, cache, durable, open, left } = await setUp(undefined, { isUsed: (hash) => used.has(hash) })
  const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => addBuild(blobs, name, 10, 'env')))
  for (const build of [a, b, c]) if (build) await cache.ensure(build)
  await durable()
  used.add(c?.hash ?? '')
  const next = open()
  const asked: string[] = []
  const forgotten = await next.forgetUnneeded(async ({ hash, usedAt }) => {
    asked.push(hash)
    assert.ok(usedAt > 0)
    return hash === a?.hash
  })
  assert.equal(asked.sort(), [a?.hash, b?.hash, c?.hash].sort())
  assert.equal(forgotten, { removed: 1, left: 1 })
  assert.equal(left(), [[a?.hash, c?.hash].sort(), []])
})

bound.run()

const shares = suite('shares of the build cache')

shares('are equal: an organization that floods it loses its own builds only', () => {
  const cache = new CacheShares(100)
  cache.add('victim', { bytes: 20, owner: 'victim', usedAt: 0 })
  const gone: string[] = []
  for (let i = 0; i < 50; i++) {
    cache.add(`flood-${i}`, { bytes: 10, owner: 'attacker', usedAt: i + 1 })
    gone.push(...cache.surplus(() => false))
  }
  assert.equal(
    gone,
    Array.from({ length: 42 }, (_, i) => `flood-${i}`),
  )
  assert.ok(cache.has('victim'))
})

shares('of many organizations shrink together', () => {
  const cache = new CacheShares(100)
  for (let i = 0; i < 10; i++) cache.add(`big-${i}`, { bytes: 10, owner: 'big', usedAt: 100 + i })
  cache.add('small', { bytes: 30, owner: 'small', usedAt: 0 })
  assert.equal(
    cache.surplus(() => false),
    ['big-0', 'big-1', 'big-2'],
  )
})

shares('end in the order of use, also within one millisecond', () => {
  const cache = new CacheShares(20)
  for (const name of ['a', 'b']) cache.add(name, { bytes: 10, owner: 'org', usedAt: 1 })
  cache.use('a', 'org', 1)
  cache.add('c', { bytes: 10, owner: 'org', usedAt: 1 })
  assert.equal(
    cache.surplus(() => false),
    ['b'],
  )
})

shares.run()
