import { createHash, randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { ZipFile } from 'yazl'
import { newId } from '../../src/ids.ts'
import { type Build, type BuildUpload, call, type Files, formOf, upload } from '../support/build.ts'
import type { Answer, Api } from '../support/http.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { zipBuild, type ZippedBuild } from '../support/zipBuild.ts'
import { isRefused, refusal } from './refusal.ts'

const server = await startWithOther()
const { api, other } = server
await api.post('/projects', { name: 'up' })

const UPLOAD_FIELDS = [
  'build_id',
  'created_at',
  'functions',
  'hash',
  'ignored',
  'project_id',
  'size',
  'storage_backend',
  'storage_path',
  'warnings',
]

const zipped = (bytes: Buffer): ZippedBuild => ({
  bytes,
  hash: createHash('sha256').update(bytes).digest('hex'),
})

const PLAIN: Files = { 'plain.js': 'export const one = () => 1' }

const uploading = suite('uploading a build')

uploading('returns 201 with the stored build', async () => {
  const zip = await zipBuild(PLAIN)
  const { status, json, headers } = await upload(api, 'up', zip)
  const { data } = json as { data: BuildUpload }
  assert.is(status, 201)
  assert.equal(Object.keys(data).sort(), UPLOAD_FIELDS)
  assert.equal([data.hash, data.size], [zip.hash, zip.bytes.length])
  assert.is(headers.get('x-build-exists'), null)
})

uploading('returns the functions with their triggers, and the files that are no modules', async () => {
  const files = {
    'm.js': [
      `import { fn } from 'svc'`,
      `export const on = fn({ 'on-event': 'order:created', schedule: '0 3 * * *' }, () => 1)`,
      `export const paid = fn({ webhook: { service: 'shop', path: '/paid' } }, () => 1)`,
      `export const plain = () => 1`,
    ].join('\n'),
    'page.tsx': '',
    'old.cjs': '',
  }
  const build_id = newId()
  const { data } = (await upload(api, 'up', files, { build_id })).json as { data: BuildUpload }
  const functions = [
    {
      fn: 'm/on',
      ns: 'm',
      var: 'on',
      on_event: 'order:created',
      schedule: { cron: '0 3 * * *', timezone: 'UTC' },
    },
    {
      fn: 'm/paid',
      ns: 'm',
      var: 'paid',
      webhook: { service: 'shop', path: '/paid', method: 'POST', auth: 'none' },
    },
    { fn: 'm/plain', ns: 'm', var: 'plain' },
  ]
  assert.equal([data.functions, data.ignored, data.warnings], [functions, ['old.cjs', 'page.tsx'], []])
  const again = (await upload(api, 'up', files, { build_id })).json as { data: BuildUpload }
  assert.equal(again.data.functions, functions)
})

uploading('refuses a build without functions, and stores nothing', async () => {
  const before = (await api.page('/projects/up/builds')).pagination.total
  isRefused(await upload(api, 'up', { 'README.md': 'hello', 'app.tsx': '' }), 'found README.md, app.tsx')
  assert.is((await api.page('/projects/up/builds')).pagination.total, before)
})

uploading('accepts the hash in upper case', async () => {
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

uploading('six times at once with one build_id stores it once', async () => {
  const build_id = newId()
  const replies = await Promise.all(Array.from({ length: 6 }, () => upload(api, 'up', PLAIN, { build_id })))
  assert.equal(replies.map(({ status }) => status).toSorted(), [200, 200, 200, 200, 200, 201])
  for (const { status, headers } of replies)
    assert.is(headers.get('x-build-exists'), status === 200 ? 'true' : null)
  const { data } = await api.page<BuildUpload>('/projects/up/builds?limit=100')
  assert.is(data.filter((build) => build.build_id === build_id).length, 1)
})

uploading('refuses other bytes, or another live, under a build_id that exists', async () => {
  const build_id = newId()
  await upload(api, 'up', PLAIN, { build_id })
  const isConflict = (reply: Answer) => {
    const { status, code, message } = refusal(reply)
    assert.equal([status, code], [409, 'conflict'])
    assert.match(message, /^build_id: /)
  }
  isConflict(await upload(api, 'up', { 'other.js': '' }, { build_id }))
  isConflict(await upload(api, 'up', PLAIN, { build_id, live: 'true' }))
})

uploading('accepts one of several builds that arrive at once under one build_id', async () => {
  const build_id = newId()
  const replies = await Promise.all(
    [1, 2, 3].map((n) => upload(api, 'up', { 'n.js': `export const n = () => ${n}` }, { build_id })),
  )
  assert.equal(replies.map(({ status }) => status).toSorted(), [201, 409, 409])
})

uploading(
  'accepts a build_id that another project or environment uses, and keeps the builds apart',
  async () => {
    const build_id = newId()
    await api.post('/projects', { name: 'elsewhere' })
    await other.post('/projects', { name: 'up' })
    const uploads: [Api, string, Files][] = [
      [api, 'up', PLAIN],
      [api, 'elsewhere', { 'mine.js': 'export const who = () => 2' }],
      [other, 'up', { 'mine.js': 'export const who = () => 3' }],
    ]
    for (const [as, project, files] of uploads)
      assert.is((await upload(as, project, files, { build_id })).status, 201)
    for (const [as, project, files] of uploads) {
      const build = await as.get<Build>(`/projects/${project}/builds/${build_id}`)
      assert.is(build.hash, (await zipBuild(files)).hash)
    }
    await api.post(`/projects/elsewhere/builds/${build_id}/deploy`)
    await other.post(`/projects/up/builds/${build_id}/deploy`)
    assert.is((await call(api, 'mine/who')).result, 2)
    assert.is((await call(other, 'mine/who')).result, 3)
    assert.is((await api.get<Build>(`/projects/up/builds/${build_id}`)).deployed, false)
    await api.remove('/projects/elsewhere')
    assert.is((await api.get<Build>(`/projects/up/builds/${build_id}`)).build_id, build_id)
    assert.is((await call(other, 'mine/who')).result, 3)
  },
)

const fields: [name: string, fields: Record<string, string | undefined>, message: string][] = [
  ['a hash that is not the file’s', { hash: '0'.repeat(64) }, 'hash: '],
  ['no hash', { hash: undefined }, 'hash: '],
  ['an empty hash', { hash: '' }, 'hash: '],
  ['a hash of another length', { hash: 'a'.repeat(40) }, 'hash: '],
  ['a build_id that is no UUID', { build_id: 'mine' }, 'build_id: '],
  ['a live that is neither true nor false', { live: 'yes' }, 'live: '],
]
for (const [name, given, message] of fields) {
  uploading(`refuses ${name}`, async () => isRefused(await upload(api, 'up', PLAIN, given), message))
}

/** A form as some clients write it: a file has a name, and no content type (RFC 7578, 4.4). */
const typeless = ({ bytes, hash }: ZippedBuild, disposition: string) => ({
  body: new Uint8Array(
    Buffer.concat([
      Buffer.from(`--x\r\nContent-Disposition: form-data; name="hash"\r\n\r\n${hash}\r\n`),
      Buffer.from(`--x\r\nContent-Disposition: form-data; name="file"${disposition}\r\n\r\n`),
      bytes,
      Buffer.from('\r\n--x--\r\n'),
    ]),
  ),
  headers: { 'Content-Type': 'multipart/form-data; boundary=x' },
})

for (const [size, padding] of [
  ['small', 0],
  ['large', 3 << 20],
] as const) {
  uploading(`takes a ${size} file whose part has no content type`, async () => {
    const zip = await zipBuild({ ...PLAIN, 'data.bin': randomBytes(padding).toString('latin1') })
    const { status, json } = await api.send(
      'POST',
      '/projects/up/builds',
      typeless(zip, '; filename="build.zip"'),
    )
    assert.is(status, 201)
    assert.is((json as { data: Build }).data.hash, zip.hash)
  })
}

uploading('says that a part without a file name is text', async () => {
  const answer = await api.send('POST', '/projects/up/builds', typeless(await zipBuild(PLAIN), ''))
  isRefused(
    answer,
    'file: expected a file, got text: the part needs a filename, such as of curl -F file=@build.zip',
  )
})

uploading('refuses a form without a file, with a field in its place, or with two', async () => {
  const send = (body: FormData) => api.send('POST', '/projects/up/builds', { body })
  const without = formOf(await zipBuild(PLAIN))
  without.delete('file')
  isRefused(await send(without), 'file: ')
  without.set('file', 'text')
  isRefused(await send(without), 'file: ')
  const twice = formOf(await zipBuild(PLAIN))
  twice.append('file', new Blob([new Uint8Array(4 << 20)]), 'second.zip') // its upload is not complete when it is refused
  isRefused(await send(twice), 'file: expected no other file')
})

uploading('refuses a body that is not a form', async () => {
  assert.is((await api.refused('POST', '/projects/up/builds', { hash: 'x' })).status, 415)
  const broken = { body: 'not a form', headers: { 'Content-Type': 'multipart/form-data; boundary=x' } }
  isRefused(await api.send('POST', '/projects/up/builds', broken), /body|file/)
  const unbound = { body: 'not a form', headers: { 'Content-Type': 'multipart/form-data' } }
  isRefused(await api.send('POST', '/projects/up/builds', unbound), 'Content-Type: ')
})

uploading('refuses a file that is not a zip', async () => {
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

/** A zip whose entry has an invalid name: no library writes it, so the bytes of a valid name are replaced. */
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

uploading('refuses a zip bomb before it is unpacked', async () => {
  const zip = await zipBuild({ 'bomb.js': Buffer.alloc(20 << 20) })
  assert.ok(zip.bytes.length < 100 << 10)
  isRefused(await upload(api, 'up', zip), 'compressed at most')
})

uploading.after(() => server.stop())
uploading.run()
