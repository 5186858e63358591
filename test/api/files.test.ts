import { request } from 'node:http'
import * as assert from 'uvu/assert'
import { lackText } from '../../src/access/permissions.ts'
import type { Static } from 'typebox'
import type { File as FileSchema } from '../../src/api/schemas.ts'
import type { Permissions } from '../../src/events/org.ts'
import { newId } from '../../src/ids.ts'
import { type Api, openApi } from '../support/http.ts'
import { addEnvironment, startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { etagOf, storedFiles } from './storedFiles.ts'

type File = Static<typeof FileSchema>

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

const { put, get, contents } = storedFiles(server)

const { file_id: ten } = await put('ten', '0123456789')
const tag = etagOf('0123456789')

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
  assert.equal(second.pagination, { total: 3, limit: 1, offset: 1, has_more: true, next: 'l/b/x' })
})

reading('lists the rest after a path, which may be deleted', async () => {
  for (const path of ['rest/a', 'rest/a!', 'rest/b', 'rest/b/ü', 'rest/c']) await put(path, path)
  const page = (after: string) =>
    api.page<File>(`/files?prefix=rest/&limit=2&after=${encodeURIComponent(after)}`)
  const { data, pagination } = await page('rest/a')
  assert.equal(
    data.map(({ path }) => path),
    ['rest/a!', 'rest/b'],
  )
  assert.equal(pagination, { total: 4, limit: 2, offset: 0, has_more: true, next: 'rest/b' })
  for (const { file_id } of data) await api.send('DELETE', `/files/${file_id}`)
  const last = await page('rest/b')
  assert.equal(
    last.data.map(({ path }) => path),
    ['rest/b/ü', 'rest/c'],
  )
  assert.is(last.pagination.next, undefined)
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

reading('downloads by path as by id, with ranges and ETags', async () => {
  const content = 'by path'
  const path = `at/${encodeURIComponent('ü b%#?.txt')}`
  const file = await put(path, content, { type: 'text/csv' })
  const at = `/files/download/${path}`
  const { status, text, headers } = await api.send('GET', at)
  const byId = await get(file.file_id)
  assert.equal([status, text, headers.get('content-type')], [200, content, 'text/csv'])
  for (const name of ['etag', 'content-disposition', 'content-security-policy', 'last-modified'])
    assert.is(headers.get(name), byId.headers.get(name))
  const part = await api.send('GET', at, { headers: { Range: 'bytes=3-' } })
  assert.equal([part.status, part.text], [206, 'path'])
  const same = await api.send('GET', at, { headers: { 'If-None-Match': file.etag } })
  assert.equal([same.status, same.text], [304, ''])
  const head = await api.send('HEAD', at)
  assert.equal([head.status, head.headers.get('content-length')], [200, '7'])
  await put('at/download', 'last')
  assert.is((await api.send('GET', '/files/download/at/download')).text, 'last')
})

reading('by path refuses another environment, another path, and what is no path', async () => {
  await put('a/theirs.txt', 'secret')
  const statusOf = async (by: Api, path: string) => (await by.send('GET', `/files/download/${path}`)).status
  assert.equal(
    [
      await statusOf(api, 'a/theirs.txt'),
      await statusOf(other, 'a/theirs.txt'),
      await statusOf(api, 'a/none.txt'),
      await statusOf(api, 'a//b'),
      await statusOf(api, 'a/b%0a'),
      await statusOf(api, ''),
      await statusOf(mine, 'a/mine.txt'),
      await statusOf(mine, 'a/theirs.txt'),
      await statusOf(mine, 'a%2ftheirs.txt'),
    ],
    [200, 404, 404, 400, 400, 404, 404, 403, 403],
  )
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
  ['bytes=8-9223372036854775807', 206, 'bytes 8-9/10', '89'],
  ['bytes=-18446744073709551615', 206, 'bytes 0-9/10', '0123456789'],
  ['bytes=9223372036854775807-', 416, 'bytes */10', null],
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
  // Other content of the same second would have the same date.
  const modified = (await get(ten)).headers.get('last-modified') ?? ''
  const whole = await get(ten, { Range: 'bytes=1-1', 'If-Range': modified })
  assert.equal([whole.status, whole.text], [200, '0123456789'])
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

for (const [name, value, status] of [
  ['If-Match', tag, 200],
  ['If-Match', `"x", ${tag}`, 200],
  ['If-Match', '*', 200],
  ['If-Match', '"x"', 412],
  ['If-Match', `W/${tag}`, 412],
  ['If-Unmodified-Since', 'Thu, 01 Jan 2026 00:00:00 GMT', 412],
  ['If-Unmodified-Since', 'Fri, 31 Dec 9999 23:59:59 GMT', 200],
  ['If-Unmodified-Since', 'yesterday', 200],
] as const) {
  reading(`answers ${name}: ${value.replace(/[0-9a-f]{60}/, '…')} with ${status}`, async () => {
    const answer = await get(ten, { [name]: value, 'If-None-Match': tag, Range: 'bytes=0-3' })
    assert.is(answer.status, status === 200 ? 304 : status)
    const { status: unknown, json } = await get(ten, { [name]: value })
    assert.is(unknown, status)
    if (status === 412) assert.is((json as { error: { code: string } }).error.code, 'precondition_failed')
  })
}

reading('checks no date beside If-Match, and accepts its own date', async () => {
  const past = 'Thu, 01 Jan 2026 00:00:00 GMT'
  assert.is((await get(ten, { 'If-Match': tag, 'If-Unmodified-Since': past })).status, 200)
  const modified = (await get(ten)).headers.get('last-modified') ?? ''
  assert.is((await get(ten, { 'If-Unmodified-Since': modified })).status, 200)
})

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
  assert.equal([refused.status, refused.message], [403, lackText('file', 'update', 'a/mine.txt')])
  await put('a/mine.txt', '2', { as: updater })
  assert.is((await updater.refused('PUT', '/files/upload/a/new.txt', 'x')).status, 403)
  assert.is((await updater.refused('GET', '/files')).status, 403)
  assert.is((await reader.page('/files')).pagination.limit, 20)
  assert.is((await reader.refused('PUT', '/files/upload/a/new.txt', 'x')).status, 403)
})

/** Uploads content only after `meanwhile`, when the service has let the request in. Resolves with the status. */
const slowPut = (path: string, as: Api, meanwhile: () => Promise<unknown>): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = request(`${url}/v1/files/upload/${path}`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${as.key}`, 'Content-Length': 4, Expect: '100-continue' },
    })
    sent.on('continue', () => void meanwhile().then(() => sent.end('slow'), reject))
    sent.on('response', (response) => resolve(response.resume().statusCode ?? 0))
    sent.on('error', reject)
    sent.flushHeaders()
  })

permissions('apply to the file that is at the path when the upload ends', async () => {
  await team.remove(`/files/${(await put('a/mine.txt', '1', { as: team })).file_id}`)
  let file_id = ''
  const create = async () => ({ file_id } = await put('a/mine.txt', 'team', { as: team }))
  assert.is(await slowPut('a/mine.txt', mine, create), 403)
  assert.is((await team.send('GET', `/files/${file_id}/download`)).text, 'team')
  const remove = () => team.remove(`/files/${file_id}`)
  const kept = await contents()
  assert.is(await slowPut('a/mine.txt', updater, remove), 403)
  assert.is((await team.page('/files?prefix=a/mine.txt')).pagination.total, 0)
  assert.is(await contents(), kept - 1)
})

permissions.after(() => server.stop())
permissions.run()
