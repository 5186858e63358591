import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { ZipFile } from 'yazl'
import { newId } from '../../src/ids.ts'
import { type BuildUpload, type Files, formOf, upload } from '../support/build.ts'
import type { Answer } from '../support/http.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { zipBuild, type ZippedBuild } from '../support/zipBuild.ts'
import { isRefused, refusal } from './refusal.ts'

const server = await startServer()
const { api } = server
await api.post('/projects', { name: 'up' })

const UPLOAD_FIELDS = [
  'build_id',
  'created_at',
  'hash',
  'project_id',
  'size',
  'storage_backend',
  'storage_path',
]

const zipped = (bytes: Buffer): ZippedBuild => ({
  bytes,
  hash: createHash('sha256').update(bytes).digest('hex'),
})

const PLAIN: Files = { 'plain.js': 'export const one = () => 1' }

const uploading = suite('uploading a build')

uploading('answers 201 with what was stored', async () => {
  const zip = await zipBuild(PLAIN)
  const { status, json, headers } = await upload(api, 'up', zip)
  const { data } = json as { data: BuildUpload }
  assert.is(status, 201)
  assert.equal(Object.keys(data).sort(), UPLOAD_FIELDS)
  assert.equal([data.hash, data.size], [zip.hash, zip.bytes.length])
  assert.is(headers.get('x-build-exists'), null)
})

uploading('takes the hash in upper case', async () => {
  const zip = await zipBuild(PLAIN)
  assert.is((await upload(api, 'up', zip, { hash: zip.hash.toUpperCase() })).status, 201)
})

uploading('is idempotent by build_id', async () => {
  const build_id = newId()
  const first = await upload(api, 'up', PLAIN, { build_id })
  const second = await upload(api, 'up', PLAIN, { build_id })
  assert.equal([first.status, second.status], [201, 200])
  assert.is(second.headers.get('x-build-exists'), 'true')
  const dataOf = ({ json }: Answer) => (json as { data: BuildUpload }).data
  assert.equal(dataOf(second), dataOf(first))
  assert.is(dataOf(first).build_id, build_id)
})

uploading('is idempotent when both come at once', async () => {
  const build_id = newId()
  const answers = await Promise.all([1, 2, 3, 4].map(() => upload(api, 'up', PLAIN, { build_id })))
  for (const { status } of answers) assert.ok(status === 200 || status === 201, String(status))
  const { data } = await api.page<BuildUpload>('/projects/up/builds?limit=100')
  assert.is(data.filter((build) => build.build_id === build_id).length, 1)
})

uploading('refuses a build_id that stands for something else', async () => {
  const build_id = newId()
  await upload(api, 'up', PLAIN, { build_id })
  assert.is(refusal(await upload(api, 'up', { 'other.js': '' }, { build_id })).status, 409)
  await api.post('/projects', { name: 'elsewhere' })
  assert.is(refusal(await upload(api, 'elsewhere', PLAIN, { build_id })).status, 409)
})

const fields: [name: string, fields: Record<string, string | undefined>, told: string][] = [
  ['a hash that is not the file’s', { hash: '0'.repeat(64) }, 'hash: the file has SHA-256 '],
  ['no hash', { hash: undefined }, 'hash: is required'],
  ['an empty hash', { hash: '' }, 'hash: expected 64 hex digits'],
  ['a hash of another kind', { hash: 'a'.repeat(40) }, 'hash: expected 64 hex digits'],
  ['a build_id that is no UUID', { build_id: 'mine' }, 'build_id: expected a UUID'],
  ['a live that is neither true nor false', { live: 'yes' }, 'live: expected true or false'],
]
for (const [name, given, told] of fields) {
  uploading(`refuses ${name}`, async () => isRefused(await upload(api, 'up', PLAIN, given), told))
}

uploading('refuses a form without a file, with a field in its place, or with two', async () => {
  const send = (body: FormData) => api.send('POST', '/projects/up/builds', { body })
  const without = formOf(await zipBuild(PLAIN))
  without.delete('file')
  isRefused(await send(without), 'file: is required')
  without.set('file', 'text')
  isRefused(await send(without), 'file: is required')
  const twice = formOf(await zipBuild(PLAIN))
  twice.append('file', new Blob([new Uint8Array(4 << 20)]), 'second.zip') // still on its way when it is refused
  isRefused(await send(twice), 'body: not a form that can be read')
})

uploading('refuses what is no form', async () => {
  assert.is((await api.refused('POST', '/projects/up/builds', { hash: 'x' })).status, 415)
  const broken = { body: 'not a form', headers: { 'Content-Type': 'multipart/form-data; boundary=x' } }
  isRefused(await api.send('POST', '/projects/up/builds', broken), /body|file/)
  const unbound = { body: 'not a form', headers: { 'Content-Type': 'multipart/form-data' } }
  isRefused(await api.send('POST', '/projects/up/builds', unbound), 'body: ')
})

uploading('refuses what is no zip', async () => {
  const zip = (await zipBuild(PLAIN)).bytes
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from('plain text'),
    zip.subarray(0, zip.length / 2),
    zip.subarray(30),
  ]) {
    isRefused(await upload(api, 'up', zipped(bytes)), 'file: ')
  }
})

/** Names that no honest tool writes are written over ones of the same length. */
const renamed = async (name: string): Promise<ZippedBuild> => {
  const { bytes } = await zipBuild({ ['x'.repeat(name.length)]: 'export const a = 1' })
  return zipped(Buffer.from(bytes.toString('latin1').replaceAll('x'.repeat(name.length), name), 'latin1'))
}
for (const name of [
  '../evil.js',
  'a/../../evil.js',
  '/etc/evil.js',
  'C:/evil.js',
  '..\\evil.js',
  'a/./evil.js',
  'a//evil.js',
  'nul\0.js',
]) {
  uploading(`refuses an entry named ${JSON.stringify(name)}`, async () => {
    isRefused(await upload(api, 'up', await renamed(name)), 'file: ')
  })
}

uploading('refuses a symbolic link', async () => {
  const zip = new ZipFile()
  zip.addBuffer(Buffer.from('/etc/passwd'), 'link.js', { mode: 0o120777 })
  zip.end()
  isRefused(await upload(api, 'up', zipped(await buffer(zip.outputStream))), 'symbolic link')
})

uploading('refuses a bomb before it goes off', async () => {
  const zip = await zipBuild({ 'bomb.js': Buffer.alloc(20 << 20) })
  assert.ok(zip.bytes.length < 100 << 10)
  isRefused(await upload(api, 'up', zip), 'packed at most')
})

uploading.after(() => server.stop())
uploading.run()
