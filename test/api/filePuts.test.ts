import { request } from 'node:http'
import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { File as FileSchema } from '../../src/api/schemas.ts'
import { isId } from '../../src/ids.ts'
import { withBlobs } from '../support/blobs.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { isRefused } from './refusal.ts'
import { etagOf, type FileUpload, storedFiles } from './storedFiles.ts'

type File = Static<typeof FileSchema>

const server = await startServer()
const { api, url } = server
const { put, get, contents } = storedFiles(server)
const backend = await withBlobs(server.dataDir, (blobs) => Promise.resolve(blobs.backend))

const uploads = suite('PUT /files/upload/{path}')

uploads('answers 200 with the File of SPEC.md, without the runs that wrote it', async () => {
  const answer = await api.send('PUT', '/files/upload/first/hello.txt', {
    body: 'hello',
    headers: { 'Content-Type': 'text/plain; charset=utf-8' },
  })
  assert.is(answer.status, 200)
  const { file_id, created_at, ...rest } = (answer.json as { data: FileUpload }).data
  assert.ok(isId(file_id))
  assert.is(new Date(created_at).toISOString(), created_at)
  assert.equal(rest, {
    path: 'first/hello.txt',
    size: 5,
    etag: etagOf('hello'),
    content_type: 'text/plain; charset=utf-8',
    storage_backend: backend,
    updated_at: created_at,
  })
  assert.is(answer.headers.get('etag'), rest.etag)
})

for (const [name, value] of [
  ['If-None-Match', '*'],
  ['If-Match', '"another"'],
  ['If-Unmodified-Since', 'Thu, 01 Jan 1970 00:00:00 GMT'],
] as const) {
  uploads(`refuses ${name}, because it would replace content that the client excluded`, async () => {
    const { file_id } = await put('conditional', 'one')
    const headers = { [name]: value }
    const replaced = await api.send('PUT', '/files/upload/conditional', { body: 'two', headers })
    const deleted = await api.send('DELETE', `/files/${file_id}`, { headers })
    assert.equal([replaced.status, deleted.status], [400, 400])
    const { message } = (replaced.json as { error: { message: string } }).error
    assert.is(message, `${name}: not supported, expected a change without a condition`)
    assert.is((await get(file_id)).text, 'one')
  })
}

uploads('replaces the content at the same path and keeps file_id; the old content is removed', async () => {
  const before = await put('same', 'one')
  const kept = await contents()
  const after = await put('same', 'two!', { type: 'text/html' })
  assert.equal([after.file_id, after.created_at], [before.file_id, before.created_at])
  assert.equal([after.size, after.etag, after.content_type], [4, etagOf('two!'), 'text/html'])
  assert.ok(after.updated_at >= before.updated_at)
  assert.is((await get(after.file_id)).text, 'two!')
  assert.is(await contents(), kept)
})

uploads('keeps bytes unchanged, also an empty file', async () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, n) => n)
  const file = await put('bytes', bytes, { type: 'application/x-bytes' })
  const response = await fetch(`${url}/v1/files/${file.file_id}/download`, {
    headers: { Authorization: `Bearer ${api.key}` },
  })
  assert.equal(new Uint8Array(await response.arrayBuffer()), bytes)
  const empty = await put('empty', '')
  assert.equal([empty.size, (await get(empty.file_id)).text], [0, ''])
})

uploads('refuses an encoding, which no download would name', async () => {
  const { upload_id } = await api.post<{ upload_id: string }>('/files/uploads', { path: 'encoded' })
  for (const path of ['upload/encoded', `uploads/${upload_id}/1`]) {
    const put = (encoding: string) =>
      api.send('PUT', `/files/${path}`, { body: 'x', headers: { 'content-encoding': encoding } })
    isRefused(
      await put('gzip'),
      /^Content-Encoding: not supported, expected the content as it is to be stored/,
    )
    assert.is((await put('identity')).status, 200)
  }
})

uploads('treats a file without type as bytes', async () => {
  const { json } = await api.send('PUT', '/files/upload/untyped', { body: new Uint8Array(3) })
  assert.is((json as { data: File }).data.content_type, 'application/octet-stream')
})

for (const type of ['nonsense']) {
  uploads(`refuses the type ${type.slice(0, 20)}`, async () => {
    const { status, json } = await api.send('PUT', '/files/upload/typed', {
      body: 'x',
      headers: { 'Content-Type': type },
    })
    assert.equal([status, (json as { error: { code: string } }).error.code], [400, 'bad_request'])
  })
}

/** Without a client that tidies the path up. */
const rawPut = (path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = request(`${url}`, {
      method: 'PUT',
      path: `/v1/files/upload/${path}`,
      headers: { Authorization: `Bearer ${api.key}` },
    })
    sent.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end('x')
  })

for (const path of [
  'a//b',
  'a/',
  '/a',
  '.',
  '..',
  'a/../b',
  'a/./b',
  'a%00b',
  'a%0ab',
  '%c2%85',
  '%ff',
  '%',
]) {
  uploads(`refuses the path ${path}`, async () => assert.is(await rawPut(path), 400))
}
uploads('refuses a path of more than 1024 bytes', async () => {
  assert.is(await rawPut('é'.repeat(512).replace(/./g, encodeURIComponent)), 200)
  assert.is(await rawPut(`${'é'.repeat(512)}x`.replace(/./g, encodeURIComponent)), 400)
})

uploads('accepts any other path, and returns it decoded', async () => {
  for (const path of [
    'a b',
    'ü/ñ/漢字.txt',
    '100%',
    'a+b=c?d#e',
    '.hidden/..x',
    '~',
    'uploads',
    'A/a',
    'a%2Fb',
  ]) {
    assert.is((await put(path.split('/').map(encodeURIComponent).join('/'), path)).path, path)
  }
  assert.is((await put('x%2Fy', '1')).path, 'x/y')
})

uploads('of one path at once store one complete content', async () => {
  const kept = await contents()
  const sent = Array.from({ length: 12 }, (_, n) => String.fromCharCode(97 + n).repeat(100_000))
  const files = await Promise.all(sent.map((content) => put('contested', content)))
  assert.is(new Set(files.map(({ file_id }) => file_id)).size, 1)
  const { text } = await get(files[0]?.file_id ?? '')
  assert.ok(sent.includes(text))
  const now = await api.get<File>(`/files/${files[0]?.file_id}`)
  assert.is(now.etag, etagOf(text))
  assert.is(await contents(), kept + 1)
})

uploads('over 300 MB are refused before they are sent', async () => {
  const status = await new Promise<number>((resolve, reject) => {
    const sent = request(`${url}/v1/files/upload/big`, {
      method: 'PUT',
      headers: {
        Authorization: `Bearer ${api.key}`,
        'Content-Length': (300 << 20) + 1,
        Expect: '100-continue',
      },
    })
    sent.on('continue', () => reject(new Error('Expected to be refused')))
    sent.on('response', (response) => {
      resolve(response.statusCode ?? 0)
      response.resume()
      sent.destroy()
    })
    sent.on('error', reject)
    sent.flushHeaders()
  })
  assert.is(status, 413)
})

uploads('of clients that expect 100-continue receive it', async () => {
  const status = await new Promise<number>((resolve, reject) => {
    const sent = request(`${url}/v1/files/upload/told`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${api.key}`, 'Content-Length': 4, Expect: '100-continue' },
    })
    sent.on('continue', () => sent.end('told'))
    sent.on('response', (response) => resolve(response.resume().statusCode ?? 0))
    sent.on('error', reject)
    sent.flushHeaders()
  })
  assert.is(status, 200)
})

uploads('that are interrupted store nothing', async () => {
  const kept = await contents()
  await new Promise<void>((resolve) => {
    const sent = request(`${url}/v1/files/upload/broken`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${api.key}`, 'Content-Length': 1000 },
    })
    sent.on('error', () => resolve())
    sent.write('half', () => sent.destroy())
  })
  assert.is((await api.page('/files?prefix=broken')).pagination.total, 0)
  assert.is(await contents(), kept)
})

uploads.after(() => server.stop())
uploads.run()
