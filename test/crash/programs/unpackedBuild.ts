import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BuildCache } from '../../../src/builds/buildCache.ts'
import { until } from '../../support/until.ts'
import { zipBuild } from '../../support/zipBuild.ts'
import { acknowledge } from './acknowledge.ts'

const [, , root = ''] = process.argv
const cache = new BuildCache({
  blobs: { get: () => Promise.reject(new Error('Expected no download')) },
  cacheDir: join(root, 'cache'),
  maxBytes: Infinity,
  ownerOf: (env_id) => env_id,
  isUsed: () => false,
  prepare: () => Promise.resolve(),
})
const { bytes, hash } = await zipBuild({
  'a.js': 'export const a = 1',
  'lib/deep/b.js': 'export const b = 2',
})
mkdirSync(join(root, 'uploads'))
const zip = join(root, 'uploads', 'build.zip')
writeFileSync(zip, bytes)
const build = { env_id: 'e', project_id: 'p', build_id: 'b', hash }
await cache.admit(build, zip, () => Promise.resolve({ ok: true }))
acknowledge(hash)
await until(() => readdirSync(join(root, 'cache', 'unsynced')).length === 0)
await cache.forget(hash)
