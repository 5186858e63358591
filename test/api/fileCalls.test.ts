import { createHash } from 'node:crypto'
import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { File as FileSchema } from '../../src/api/schemas.ts'
import { call, deploy, type Run } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'

type File = Static<typeof FileSchema>

/** Functions that work with files through the SDK. */
const FUNCTIONS = `
import { createHash } from 'node:crypto'
import { files } from 'svc'

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')
const caught = (work) => work.catch(({ code, message, name }) => ({ code, message, name }))

export const put = (path, content, options) => files.put(path, content, options)
export const putBytes = async (path, size) => {
  const bytes = new Uint8Array(size).map((_, n) => n % 251)
  return [await files.put(path, bytes), sha256(bytes)]
}
export const get = async (path) => { const { content, ...info } = await files.get(path); return { info, text: Buffer.from(content).toString() } }
export const getBytes = async (path) => sha256((await files.get(path)).content)
export const getMany = async (paths) => (await Promise.all(paths.map((path) => files.get(path)))).map(({ content }) => content.length)
export const getWithoutAwait = (path) => void files.get(path)
export const list = (options) => files.list(options)
export const remove = (path) => files.delete(path)
export const refused = async () => Promise.all([
  caught(files.get('none')), caught(files.delete('none')), caught(files.put('a//b', 'x')), caught(files.list({ limit: 0 })),
  caught(files.put('a', 'x', { contentType: 'x' })), caught(files.get(7)),
])
`

const server = await startWithOther()
const { api, other, url } = server
await deploy(api, 'files', { 'f.js': FUNCTIONS })

const invoke = async <T>(fn: string, ...args: unknown[]): Promise<{ result: T; run: Run }> => {
  const run = await call(api, `f/${fn}`, ...args)
  assert.is(run.status, 'succeeded', JSON.stringify(run.error))
  return { result: run.result as T, run }
}
const download = (file_id: string) => api.send('GET', `/files/${file_id}/download`)

const sdk = suite('files of user code')

sdk('are put, with the run that made them and the run that wrote them last', async () => {
  const first = await invoke<File>('put', 'sdk/a.txt', 'one')
  const { run_id } = first.run
  assert.equal([first.result.created_by_run_id, first.result.updated_by_run_id], [run_id, run_id])
  assert.equal([first.result.size, first.result.content_type], [3, 'text/plain; charset=utf-8'])
  const second = await invoke<File>('put', 'sdk/a.txt', 'two!', { contentType: 'text/x' })
  assert.equal(second.result, {
    ...first.result,
    size: 4,
    etag: second.result.etag,
    content_type: 'text/x',
    updated_by_run_id: second.run.run_id,
    updated_at: second.result.updated_at,
  })
  assert.equal(await api.get<File>(`/files/${first.result.file_id}`), second.result)
  assert.equal((await api.page<File>('/files?prefix=sdk/a')).data, [second.result])
  assert.is((await download(first.result.file_id)).text, 'two!')
  await api.send('PUT', '/files/upload/sdk/a.txt', { body: 'by a client' })
  const now = await api.get<File>(`/files/${first.result.file_id}`)
  assert.equal([now.created_by_run_id, now.updated_by_run_id], [run_id, null])
})

sdk('are read as a client has uploaded them', async () => {
  const { json } = await api.send('PUT', '/files/upload/sdk/b', { body: 'héllo' })
  const { result } = await invoke<{ info: File; text: string }>('get', 'sdk/b')
  assert.is(result.text, 'héllo')
  assert.is(result.info.file_id, (json as { data: File }).data.file_id)
  await api.send('PUT', '/files/upload/sdk/empty', { body: '' })
  assert.is((await invoke<{ text: string }>('get', 'sdk/empty')).result.text, '')
})

for (const size of [5 << 20, (5 << 20) + 1, 11 << 20]) {
  sdk(`of ${size} bytes are written and read completely`, async () => {
    const { result } = await invoke<[File, string]>('putBytes', `sdk/${size}`, size)
    const [file, hash] = result
    assert.is(file.size, size)
    const response = await fetch(`${url}/v1/files/${file.file_id}/download`, {
      headers: { Authorization: `Bearer ${api.key}` },
    })
    const content = new Uint8Array(await response.arrayBuffer())
    assert.is(createHash('sha256').update(content).digest('hex'), hash)
    assert.is((await invoke<string>('getBytes', `sdk/${size}`)).result, hash)
    assert.is(file.updated_by_run_id, (await api.get<File>(`/files/${file.file_id}`)).created_by_run_id)
  })
}

sdk('are read by many at once', async () => {
  const paths = Array.from({ length: 30 }, () => 'sdk/b')
  assert.equal(
    (await invoke<number[]>('getMany', paths)).result,
    paths.map(() => 6),
  )
})

sdk('are read although a run that has ended still waited for one', async () => {
  await api.send('PUT', '/files/upload/sdk/c', { body: 'c' })
  assert.is((await call(api, 'f/getMany', ['none', 'sdk/c'])).error?.message, 'No file "none"')
  assert.is((await invoke<{ text: string }>('get', 'sdk/c')).result.text, 'c')
  await invoke('getWithoutAwait', 'sdk/c')
  assert.is((await invoke<{ text: string }>('get', 'sdk/c')).result.text, 'c')
})

sdk('are listed and deleted', async () => {
  for (const path of ['l/b', 'l/a', 'm']) await invoke('put', path, path)
  const { result } = await invoke<File[]>('list', { prefix: 'l/', limit: 1, offset: 1 })
  assert.equal(
    result.map(({ path }) => path),
    ['l/b'],
  )
  await invoke('remove', 'l/b')
  assert.is((await api.page('/files?prefix=l/')).pagination.total, 1)
})

sdk('that are missing or invalid reject with a code', async () => {
  const { result } = await invoke<{ code: string; message: string }[]>('refused')
  assert.equal(
    result.map(({ code }) => code),
    ['not_found', 'not_found', 'bad_request', 'bad_request', 'bad_request', 'bad_request'],
  )
})

sdk('of another environment do not exist', async () => {
  await other.send('PUT', '/files/upload/theirs', { body: 'x' })
  const run = await call(api, 'f/get', 'theirs')
  assert.equal([run.status, run.error?.message], ['failed', 'No file "theirs"'])
})

sdk.after(() => server.stop())
sdk.run()
