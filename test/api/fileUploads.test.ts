import { createHash } from 'node:crypto'
import { request } from 'node:http'
import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type * as schemas from '../../src/api/schemas.ts'
import { isId, newId } from '../../src/ids.ts'
import { withBlobs } from '../support/blobs.ts'
import type { Api } from '../support/http.ts'
import { openApi } from '../support/http.ts'
import { addEnvironment, spawnServer, startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

type Upload = Static<typeof schemas.MultipartUpload>
type UnderWay = Static<typeof schemas.UploadUnderWay>
type Part = Static<typeof schemas.UploadedPart>
type File = Static<typeof schemas.File>

const MB = 1 << 20
const dataDir = tempDir()
const [mine = ''] = await addEnvironment(dataDir, 'limited', { 'file:a/mine': ['create', 'read'] })
const server = await startWithOther({ dataDir })
const { api, other, url } = server

const begin = (path: string, more: object = {}, as: Api = api): Promise<Upload> =>
  as.post<Upload>('/files/uploads', { path, ...more })
const bytesOf = (size: number, fill: number) => new Uint8Array(size).fill(fill)
const putPart = async (
  id: string,
  number: number,
  body: Uint8Array<ArrayBuffer>,
  as = api,
): Promise<Part> => {
  const { status, json, text } = await as.send('PUT', `/files/uploads/${id}/${number}`, { body })
  assert.is(status, 200, text)
  return (json as { data: Part }).data
}
const complete = (id: string) => api.post<File>(`/files/uploads/${id}/complete`)
const sha256 = (...parts: Uint8Array[]): string => {
  const digest = createHash('sha256')
  for (const part of parts) digest.update(part)
  return digest.digest('hex')
}
const downloaded = async (file_id: string): Promise<string> => {
  const response = await fetch(`${url}/v1/files/${file_id}/download`, {
    headers: { Authorization: `Bearer ${api.key}` },
  })
  assert.is(response.status, 200)
  return sha256(new Uint8Array(await response.arrayBuffer()))
}
const uploadsKept = (): Promise<number> =>
  withBlobs(dataDir, async (blobs) => (await Array.fromAsync(blobs.listUploads())).length)
const backend = await withBlobs(dataDir, (blobs) => Promise.resolve(blobs.backend))

const parts = suite('uploads in parts')

parts('begin with 201 and all fields of SPEC.md', async () => {
  const { status, json } = await api.send('POST', '/files/uploads', {
    body: { path: 'big/one', expected_size: 33 * MB, content_type: 'video/mp4' },
  })
  const { upload_id, expires_at, part_size, ...rest } = (json as { data: Upload }).data
  assert.is(status, 201)
  assert.ok(isId(upload_id))
  assert.ok(Date.parse(expires_at) > Date.now())
  assert.ok(part_size >= 5 * MB && part_size <= 256 * MB)
  assert.equal(rest, { path: 'big/one', parts_expected: Math.ceil((33 * MB) / part_size) })
})

parts('begin once for one Idempotency-Key, and complete once', async () => {
  const send = (path: string, body?: unknown) =>
    api.send('POST', path, { body, headers: { 'Idempotency-Key': path } })
  const [first, again] = [
    await send('/files/uploads', { path: 'keyed' }),
    await send('/files/uploads', { path: 'keyed' }),
  ]
  assert.equal(again.json, first.json)
  const { upload_id } = (first.json as { data: Upload }).data
  await putPart(upload_id, 1, bytesOf(3, 1))
  const done = await send(`/files/uploads/${upload_id}/complete`)
  assert.is(done.status, 200)
  assert.equal((await send(`/files/uploads/${upload_id}/complete`)).json, done.json)
})

parts('become a file: any order, at once, the last one small', async () => {
  const contents = [bytesOf(5 * MB, 1), bytesOf(5 * MB + 1, 2), bytesOf(10, 3)] as const
  const { upload_id } = await begin('joined', { content_type: 'video/mp4' })
  const put = await Promise.all([3, 1, 2].map((n) => putPart(upload_id, n, contents[n - 1] ?? contents[0])))
  assert.equal(put[1], { part_number: 1, size: 5 * MB, etag: `"${sha256(contents[0])}"` })
  const { status, json } = await api.send('POST', `/files/uploads/${upload_id}/complete`)
  assert.is(status, 200)
  const { file_id, etag, created_at, ...rest } = (json as { data: File }).data
  assert.equal(rest, {
    path: 'joined',
    size: 10 * MB + 11,
    content_type: 'video/mp4',
    storage_backend: backend,
    updated_at: created_at,
  })
  assert.match(etag, /^"[0-9a-f]{64}-3"$/)
  assert.is(await downloaded(file_id), sha256(...contents))
  assert.is((await api.get<File>(`/files/${file_id}`)).etag, etag)
})

parts('replace the existing file, which keeps its file_id', async () => {
  const { json } = await api.send('PUT', '/files/upload/replaced', { body: 'before' })
  const { upload_id } = await begin('replaced')
  await putPart(upload_id, 1, bytesOf(7, 9))
  const file = await complete(upload_id)
  assert.equal([file.file_id, file.size], [(json as { data: File }).data.file_id, 7])
})

parts('may be sent again, and the last one counts', async () => {
  const { upload_id } = await begin('again')
  await putPart(upload_id, 1, bytesOf(100, 1))
  await putPart(upload_id, 1, bytesOf(50, 2))
  assert.is(await downloaded((await complete(upload_id)).file_id), sha256(bytesOf(50, 2)))
})

parts('may come without Content-Length', async () => {
  const { upload_id } = await begin('chunked')
  const status = await new Promise<number>((resolve, reject) => {
    const sent = request(`${url}/v1/files/uploads/${upload_id}/1`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${api.key}`, 'Transfer-Encoding': 'chunked' },
    })
    sent.on('response', (response) => resolve(response.resume().statusCode ?? 0))
    sent.on('error', reject)
    sent.write('chunk ')
    sent.end('by chunk')
  })
  assert.is(status, 200)
  assert.is((await complete(upload_id)).size, 14)
})

parts('complete once: a repeated request returns the same file', async () => {
  const { upload_id } = await begin('twice')
  await putPart(upload_id, 1, bytesOf(10, 1))
  const [first, second] = await Promise.all([complete(upload_id), complete(upload_id)])
  assert.equal(first, second)
  assert.equal(await complete(upload_id), first)
  for (const [method, path] of [
    ['GET', ''],
    ['PUT', '/1'],
    ['DELETE', ''],
  ] as const) {
    assert.is((await api.refused(method, `/files/uploads/${upload_id}${path}`)).status, 404)
  }
})

parts('are 404 for a file that was deleted since', async () => {
  const { upload_id } = await begin('deleted')
  await putPart(upload_id, 1, bytesOf(10, 1))
  await api.remove(`/files/${(await complete(upload_id)).file_id}`)
  assert.is((await api.refused('POST', `/files/uploads/${upload_id}/complete`)).status, 404)
})

parts('are listed for a client that continues an upload', async () => {
  const upload = await begin('resumed')
  const second = await putPart(upload.upload_id, 2, bytesOf(20, 2))
  const first = await putPart(upload.upload_id, 1, bytesOf(5 * MB, 1))
  assert.equal(await api.get<UnderWay>(`/files/uploads/${upload.upload_id}`), {
    ...upload,
    parts: [first, second],
  })
})

parts('are removed when the upload is cancelled', async () => {
  const before = await uploadsKept()
  const { upload_id } = await begin('cancelled')
  await putPart(upload_id, 1, bytesOf(10, 1))
  assert.is(await uploadsKept(), before + 1)
  const { status, text } = await api.send('DELETE', `/files/uploads/${upload_id}`)
  assert.equal([status, text], [204, ''])
  assert.is(await uploadsKept(), before)
  assert.is((await api.refused('POST', `/files/uploads/${upload_id}/complete`)).status, 404)
  assert.is((await api.page('/files?prefix=cancelled')).pagination.total, 0)
})

parts('of another environment do not exist', async () => {
  const { upload_id } = await begin('theirs', {}, other)
  for (const id of [upload_id, newId(), 'nonsense']) {
    for (const [method, path] of [
      ['GET', ''],
      ['PUT', '/1'],
      ['POST', '/complete'],
      ['DELETE', ''],
    ] as const) {
      const { status, message } = await api.refused(method, `/files/uploads/${id}${path}`)
      assert.equal([status, message], [404, `No upload ${id}`])
    }
  }
})

parts('need the permission to create or change the file', async () => {
  const limited = openApi(url, mine)
  assert.is((await limited.refused('POST', '/files/uploads', { path: 'a/other' })).status, 403)
  const [first, second] = [await begin('a/mine', {}, limited), await begin('a/mine', {}, limited)]
  for (const { upload_id } of [first, second]) await putPart(upload_id, 1, bytesOf(3, 1), limited)
  assert.is((await limited.send('POST', `/files/uploads/${first.upload_id}/complete`)).status, 200)
  assert.is((await limited.refused('POST', `/files/uploads/${second.upload_id}/complete`)).status, 403)
  assert.is((await limited.refused('GET', `/files/uploads/${newId()}`)).status, 403)
})

parts.run()

const rules = suite('SPEC.md, part rules')

rules('non-final parts are at least 5 MB', async () => {
  const { upload_id } = await begin('small')
  await putPart(upload_id, 1, bytesOf(5 * MB - 1, 1))
  await putPart(upload_id, 2, bytesOf(1, 1))
  const { status, code, message } = await api.refused('POST', `/files/uploads/${upload_id}/complete`)
  assert.equal([status, code], [400, 'bad_request'])
  assert.match(message, /^part 1: /)
  await putPart(upload_id, 1, bytesOf(5 * MB, 1)) // it is still there to be mended
  assert.is((await complete(upload_id)).size, 5 * MB + 1)
})

rules('a part is at most 256 MB', async () => {
  const { upload_id } = await begin('large')
  const status = await new Promise<number>((resolve, reject) => {
    const sent = request(`${url}/v1/files/uploads/${upload_id}/1`, {
      method: 'PUT',
      headers: {
        Authorization: `Bearer ${api.key}`,
        'Content-Length': 256 * MB + 1,
        Expect: '100-continue',
      },
    })
    sent.on('continue', () => reject(new Error('Expected to be refused')))
    sent.on('response', (response) => {
      resolve(response.resume().statusCode ?? 0)
      sent.destroy()
    })
    sent.on('error', reject)
    sent.flushHeaders()
  })
  assert.is(status, 413)
})

for (const number of ['0', '10001', 'x', '-1', '1e3', '00000000001']) {
  rules(`part numbers are 1 to 10,000, not ${number}`, async () => {
    const { upload_id } = await begin('numbers')
    const { status, message } = await api.refused('PUT', `/files/uploads/${upload_id}/${number}`, 'x')
    assert.is(status, 400)
    assert.is(message, `part_number: expected 1 to 10000, got ${number}`)
  })
}

rules('a part of a part is refused', async () => {
  const { upload_id } = await begin('pieces')
  const headers = { 'Content-Range': 'bytes 0-2/9' }
  const { status, json } = await api.send('PUT', `/files/uploads/${upload_id}/1`, { body: 'abc', headers })
  assert.is(status, 400)
  assert.match(JSON.stringify(json), 'Content-Range: not supported, expected the whole content')
})

rules('part 10,000 is one', async () => {
  const { upload_id } = await begin('last')
  assert.is((await putPart(upload_id, 10_000, bytesOf(1, 1))).part_number, 10_000)
})

rules('an upload has parts, without a gap, as many bytes as announced', async () => {
  const { upload_id } = await begin('gaps', { expected_size: 5 * MB + 1 })
  const refused = async () => (await api.refused('POST', `/files/uploads/${upload_id}/complete`)).message
  assert.match(await refused(), /at least one/)
  await putPart(upload_id, 2, bytesOf(1, 1))
  assert.match(await refused(), /no part 1/)
  await putPart(upload_id, 1, bytesOf(5 * MB - 1, 1))
  assert.match(await refused(), /part 1/)
  await putPart(upload_id, 1, bytesOf(5 * MB + 5, 1))
  assert.match(await refused(), /5242881 bytes in total/)
})

for (const [body, field] of [
  [{}, 'path'],
  [{ path: 'a//b' }, 'path'],
  [{ path: '\ud800' }, 'path'],
  [{ path: 'a', expected_size: -1 }, 'expected_size'],
  [{ path: 'a', expected_size: 1.5 }, 'expected_size'],
  [{ path: 'a', content_type: 'x' }, 'content_type'],
] as const) {
  rules(`an upload does not begin with ${JSON.stringify(body)}`, async () => {
    const { status, message } = await api.refused('POST', '/files/uploads', body)
    assert.is(status, 400)
    assert.ok(message.startsWith(`${field}: `), message)
  })
}

rules('a file is at most 50 GB (Scale and Self-Host), checked at the start', async () => {
  assert.is((await begin('most', { expected_size: 50 * 1024 * MB })).parts_expected, 3200)
  const { status, code } = await api.refused('POST', '/files/uploads', {
    path: 'more',
    expected_size: 50 * 1024 * MB + 1,
  })
  assert.equal([status, code], [403, 'quota_exceeded'])
})

rules.after(() => server.stop())
rules.run()

const dying = suite('an upload whose server dies')

dying('continues where it was interrupted', async () => {
  const dir = tempDir()
  const first = await spawnServer({ dataDir: dir })
  const { upload_id } = await first.api.post<Upload>('/files/uploads', { path: 'survivor' })
  const put = await putPart(upload_id, 1, bytesOf(5 * MB, 1), first.api)
  await first.end('SIGKILL')
  const second = await spawnServer({ dataDir: dir })
  assert.equal((await second.api.get<UnderWay>(`/files/uploads/${upload_id}`)).parts, [put])
  await putPart(upload_id, 2, bytesOf(5, 2), second.api)
  const { size } = await second.api.post<File>(`/files/uploads/${upload_id}/complete`)
  assert.is(size, 5 * MB + 5)
  await second.stop()
})

dying.run()
