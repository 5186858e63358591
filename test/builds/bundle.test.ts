import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { BuildCache } from '../../src/builds/bundle.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { buildBlobs } from '../sandbox/harness.ts'

const setUp = async (prepare: (dir: string) => Promise<void> = async () => {}) => {
  const blobs = buildBlobs()
  const build = await zipBuild({ 'a.js': 'export const f = () => 1' })
  blobs.add(build)
  const cacheDir = tempDir()
  const open = () => new BuildCache({ blobs, cacheDir, prepare })
  return { blobs, build, cacheDir, open, cache: open() }
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

cache('uses the unpacked build of an earlier process', async () => {
  const { blobs, build, cache, open } = await setUp()
  const dir = await cache.ensure(build)
  assert.is(await open().ensure(build), dir)
  assert.is(blobs.gets, 1)
})

cache('removes everything when it fails, and can be repeated', async () => {
  let fails = true
  const { build, cacheDir, cache } = await setUp(async () => {
    if (fails) throw new Error('not now')
  })
  assert.is(await codeOf(cache.ensure(build)), 'not now')
  assert.equal([readdirSync(join(cacheDir, 'builds')), readdirSync(join(cacheDir, 'tmp'))], [[], []])
  fails = false
  assert.is(await codeOf(cache.ensure(build)), 'resolved')
})

cache('removes leftovers of processes that died when they are old', async () => {
  const { build, cacheDir, cache } = await setUp()
  for (const name of ['old', 'new']) mkdirSync(join(cacheDir, 'tmp', name), { recursive: true })
  writeFileSync(join(cacheDir, 'tmp', 'old', 'torn'), 'x')
  utimesSync(join(cacheDir, 'tmp', 'old'), 0, 0)
  await cache.ensure(build)
  assert.equal(readdirSync(join(cacheDir, 'tmp')), ['new'])
})

cache('refuses bytes that do not match the hash', async () => {
  const { blobs, build, cache } = await setUp()
  blobs.add({ hash: 'b'.repeat(64), bytes: build.bytes })
  assert.is(await codeOf(cache.ensure({ hash: 'b'.repeat(64) })), 'bad_request')
})

cache('reports a missing zip and an invalid hash', async () => {
  const { cache } = await setUp()
  assert.is(await codeOf(cache.ensure({ hash: 'c'.repeat(64) })), 'not_found')
  assert.is(await codeOf(cache.ensure({ hash: '../../etc' })), 'bad_request')
})

cache.run()
