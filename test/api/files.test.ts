import { createHash } from 'node:crypto'
import { request } from 'node:http'
import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { File as FileSchema, FileUpload as FileUploadSchema } from '../../src/api/schemas.ts'
import type { Permissions } from '../../src/events/org.ts'
import { isId, newId } from '../../src/ids.ts'
import { withBlobs } from '../support/blobs.ts'
import type { Api } from '../support/http.ts'
import { addEnvironment, startWithOther } from '../support/server.ts'
import { openApi } from '../support/http.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

type File = Static<typeof FileSchema>
type FileUpload = Static<typeof FileUploadSchema>

const dataDir = tempDir()
const maps: Permissions[] = [
  { 'file:a/mine.txt': ['read', 'create'] },
  { 'file:*': ['update'] },
  { 'file:*': ['read'] },
]
const keys = await addEnvironment(dataDir, 'limited', { '*:*': ['*'] }, ...maps)
const server = await startWithOther({ dataDir })
const { api, other, url } = server
const [team, mine, updater, reader] = keys.map((key) => openApi(url, key)) as [Api, Api, Api, Api]

const put = async (
  path: string,
  content: string | Uint8Array<ArrayBuffer>,
  { as = api, type }: { as?: Api; type?: string } = {},
): Promise<FileUpload> => {
  const { status, json, text } = await as.send('PUT', `/files/upload/${path}`, {
    body: content,
    headers: { 'Content-Type': type ?? 'text/plain' },
  })
  assert.is(status, 200, text)
  return (json as { data: FileUpload }).data
}
const get = (file_id: string, headers: Record<string, string> = {}) =>
  api.send('GET', `/files/${file_id}/download`, { headers })
const etagOf = (content: string) => `"${createHash('sha256').update(content).digest('hex')}"`

/** Resolves with the number of stored contents. */
const contents = (): Promise<number> =>
  withBlobs(dataDir, async (blobs) => (await Array.fromAsync(blobs.list('files/'))).length)
const backend = await withBlobs(dataDir, (blobs) => Promise.resolve(blobs.backend))

const { file_id: ten } = await put('ten', '0123456789')
const tag = etagOf('0123456789')

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

uploads.run()

const reading = suite('reading files')

reading('lists by path, with the runs that wrote them, a prefix and pages', async () => {
  for (const path of ['l/c', 'l/a', 'l/b/x', 'l2']) await put(path, path)
  const all = await api.page<File>('/files?prefix=l/')
  assert.equal(
    all.data.map(({ path }) => path),
    ['l/a', 'l/b/x', 'l/c'],
  )
  const [first] = all.data
  assert.equal([first?.created_by_run_id, first?.updated_by_run_id], [null, null])
  assert.equal(all.pagination, { total: 3, limit: 20, offset: 0, has_more: false })
  const second = await api.page<File>('/files?prefix=l/&limit=1&offset=1')
  assert.is(second.data[0]?.path, 'l/b/x')
  assert.equal(second.pagination, { total: 3, limit: 1, offset: 1, has_more: true })
})

reading('returns the metadata of one file', async () => {
  const file = await put('meta', 'm')
  assert.equal(await api.get(`/files/${file.file_id}`), {
    ...file,
    created_by_run_id: null,
    updated_by_run_id: null,
  })
})

reading('downloads with type, name and ETag, as an attachment', async () => {
  const file = await put('d/na"me\u202e.html', '<script>', { type: 'text/html' })
  const { status, headers, text } = await get(file.file_id)
  assert.equal([status, text], [200, '<script>'])
  assert.is(headers.get('content-type'), 'text/html')
  assert.is(headers.get('content-length'), '8')
  assert.is(headers.get('etag'), file.etag)
  assert.is(headers.get('accept-ranges'), 'bytes')
  assert.is(headers.get('x-content-type-options'), 'nosniff')
  assert.is(headers.get('content-security-policy'), "sandbox; default-src 'none'")
  const disposition = headers.get('content-disposition') ?? ''
  assert.match(disposition, /^attachment; filename="[\x20-\x7e]*"; filename\*=UTF-8''[\w%.-]+$/)
})

reading('answers HEAD as it answers GET, without the content', async () => {
  const file = await put('head', 'head!')
  const response = await fetch(`${url}/v1/files/${file.file_id}/download`, {
    method: 'HEAD',
    headers: { Authorization: `Bearer ${api.key}` },
  })
  assert.is(response.status, 200)
  assert.is(response.headers.get('content-length'), '5')
  assert.is(response.headers.get('etag'), file.etag)
  assert.is(await response.text(), '')
})

for (const [asked, status, range, text] of [
  ['bytes=2-4', 206, 'bytes 2-4/10', '234'],
  ['bytes=0-0', 206, 'bytes 0-0/10', '0'],
  ['bytes=7-', 206, 'bytes 7-9/10', '789'],
  ['bytes=-3', 206, 'bytes 7-9/10', '789'],
  ['bytes=-100', 206, 'bytes 0-9/10', '0123456789'],
  ['bytes=8-100', 206, 'bytes 8-9/10', '89'],
  ['bytes=10-', 416, 'bytes */10', null],
  ['bytes=-0', 416, 'bytes */10', null],
  ['bytes=4-2', 200, null, '0123456789'],
  ['bytes=0-1,3-4', 200, null, '0123456789'],
  ['bytes=a-b', 200, null, '0123456789'],
  ['lines=1-2', 200, null, '0123456789'],
] as const) {
  reading(`answers Range ${asked} with ${status}`, async () => {
    const answer = await get(ten, { Range: asked })
    assert.equal([answer.status, answer.headers.get('content-range')], [status, range])
    if (text !== null) {
      assert.is(answer.text, text)
      assert.is(answer.headers.get('content-length'), String(text.length))
    } else assert.is((answer.json as { error: { code: string } }).error.code, 'range_not_satisfiable')
  })
}

reading('sends a range only if the client’s part is of the current content (If-Range)', async () => {
  assert.is((await get(ten, { Range: 'bytes=1-1', 'If-Range': tag })).text, '1')
  assert.is((await get(ten, { Range: 'bytes=1-1', 'If-Range': '"other"' })).text, '0123456789')
  const modified = (await get(ten)).headers.get('last-modified') ?? ''
  assert.is((await get(ten, { Range: 'bytes=1-1', 'If-Range': modified })).text, '1')
})

for (const [known, status] of [
  [tag, 304],
  [`W/${tag}`, 304],
  [`"x", ${tag}`, 304],
  ['*', 304],
  ['"x"', 200],
  ['x', 200],
] as const) {
  reading(`answers If-None-Match ${known.replace(/[0-9a-f]{60}/, '…')} with ${status}`, async () => {
    const answer = await get(ten, { 'If-None-Match': known })
    assert.equal([answer.status, answer.text], [status, status === 304 ? '' : '0123456789'])
    assert.is(answer.headers.get('etag'), tag)
  })
}

reading('returns one complete content although it is replaced meanwhile', async () => {
  const { file_id } = await put('swapped', '0'.repeat(200_000))
  let over = false
  const writing = (async () => {
    for (let n = 1; n <= 20; n++) await put('swapped', String(n % 10).repeat(200_000))
    over = true
  })()
  while (!over) {
    const { status, text, headers } = await get(file_id)
    assert.is(status, 200)
    assert.is(headers.get('etag'), etagOf(text))
  }
  await writing
})

reading.run()

const deleting = suite('deleting files')

deleting('is 204, removes the file completely and frees the path', async () => {
  const file = await put('gone', 'x')
  const kept = await contents()
  const { status, text } = await api.send('DELETE', `/files/${file.file_id}`)
  assert.equal([status, text], [204, ''])
  assert.is(await contents(), kept - 1)
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '/download'],
    ['DELETE', ''],
  ] as const) {
    const { status, code } = await api.refused(method, `/files/${file.file_id}${path}`)
    assert.equal([status, code], [404, 'not_found'])
  }
  assert.is((await api.page('/files?prefix=gone')).pagination.total, 0)
  assert.is.not((await put('gone', 'y')).file_id, file.file_id)
})

deleting.run()

const environments = suite('files of another environment')

environments('have separate files on the same path', async () => {
  const theirs = await put('shared', 'theirs', { as: other })
  const ours = await put('shared', 'ours')
  assert.is.not(ours.file_id, theirs.file_id)
  for (const id of [theirs.file_id, newId(), 'nonsense']) {
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/download'],
      ['DELETE', ''],
    ] as const) {
      const { status, message } = await api.refused(method, `/files/${id}${path}`)
      assert.equal([status, message], [404, `No file ${id}`])
    }
  }
  assert.is((await other.send('GET', `/files/${theirs.file_id}/download`)).text, 'theirs')
  assert.is((await other.page('/files')).pagination.total, 1)
})

environments.run()

const permissions = suite('permissions on files')

permissions('on a path apply to that path only', async () => {
  const file = await put('a/mine.txt', '1', { as: mine })
  const theirs = await put('a/other.txt', '1', { as: team })
  assert.is((await mine.get<File>(`/files/${file.file_id}`)).path, 'a/mine.txt')
  for (const id of [theirs.file_id, newId()])
    assert.is((await mine.refused('GET', `/files/${id}`)).status, 403)
  assert.is((await mine.refused('GET', '/files')).status, 403)
  assert.is((await mine.refused('PUT', '/files/upload/a/other.txt', 'x')).status, 403)
  assert.is((await mine.refused('DELETE', `/files/${file.file_id}`)).status, 403)
})

permissions('to create do not allow updates, and vice versa', async () => {
  await put('a/mine.txt', '1', { as: team })
  const refused = await mine.refused('PUT', '/files/upload/a/mine.txt', 'x')
  assert.equal(
    [refused.status, refused.message],
    [403, 'The credential lacks the permission file:a/mine.txt update'],
  )
  await put('a/mine.txt', '2', { as: updater })
  assert.is((await updater.refused('PUT', '/files/upload/a/new.txt', 'x')).status, 403)
  assert.is((await updater.refused('GET', '/files')).status, 403)
  assert.is((await reader.page('/files')).pagination.limit, 20)
  assert.is((await reader.refused('PUT', '/files/upload/a/new.txt', 'x')).status, 403)
})

permissions.after(() => server.stop())
permissions.run()
