import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { abortUpload } from '../../../src/commands/files/abortUpload.ts'
import { beginUpload } from '../../../src/commands/files/beginUpload.ts'
import { completeUpload } from '../../../src/commands/files/completeUpload.ts'
import { deleteFile } from '../../../src/commands/files/deleteFile.ts'
import { fileAt } from '../../../src/commands/files/fileAt.ts'
import { putPart } from '../../../src/commands/files/putPart.ts'
import { readFile } from '../../../src/commands/files/readFile.ts'
import { storeFile } from '../../../src/commands/files/storeFile.ts'
import { uploadFor } from '../../../src/commands/files/uploadFor.ts'
import { newId } from '../../../src/ids.ts'
import { suite } from '../../support/suite.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
const env_id = newId()
const caller = callerOf(env_id)
const { cause } = caller

const begin = (path = `f-${newId()}`, run_id: string | null = null, by = caller) =>
  beginUpload(deps, { path, content_type: 'text/plain', run_id }, by)
const put = (upload_id: string, part_number: number, content: string, by_run_id?: string) =>
  putPart(
    deps,
    {
      upload_id,
      part_number,
      size: Buffer.byteLength(content),
      content: Readable.from([Buffer.from(content)]),
      ...(by_run_id !== undefined && { by_run_id }),
    },
    cause,
  )
const contentAt = async (path: string) => {
  const file = await fileAt(deps, env_id, path)
  return file && text(await readFile(deps, file))
}

const uploads = suite('an upload in parts')

uploads('becomes a file; a repeated completion resolves with the same file', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'content')
  const file = await completeUpload(deps, { upload_id }, cause)
  assert.equal(await completeUpload(deps, { upload_id }, cause), file)
  assert.is(await contentAt(path), 'content')
})

uploads('begins once for one id', async () => {
  const id = newId()
  const again = { cause, newId: () => id }
  assert.equal(await begin('once', null, again), await begin('once', null, again))
})

uploads('is not found after its completion for parts, nor after the deletion of its file', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'x')
  const { file_id } = await completeUpload(deps, { upload_id }, cause)
  await refusedWith('not_found', () => put(upload_id, 1, 'y'))
  await deleteFile(deps, { path, file_id }, cause)
  await refusedWith('not_found', () => completeUpload(deps, { upload_id }, cause))
})

uploads('that was read does not change when another part arrives', async () => {
  const { upload_id } = await begin()
  await put(upload_id, 1, 'x')
  const before = await uploadFor(deps, env_id, { upload_id })
  await put(upload_id, 2, 'y')
  assert.is(before.parts.size, 1)
  assert.is((await uploadFor(deps, env_id, { upload_id })).parts.size, 2)
})

uploads('has the last content of a part that is sent again', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'first')
  await put(upload_id, 1, 'second')
  await completeUpload(deps, { upload_id }, cause)
  assert.is(await contentAt(path), 'second')
})

for (const part_number of [0, -1, 1.5, NaN, 10_001])
  uploads(`has no part ${part_number}`, async () => {
    const { upload_id } = await begin()
    await refusedWith('bad_request', () => put(upload_id, part_number, 'x'))
  })

uploads('of a run is known to that run and to the API, and to no other run', async () => {
  const run_id = newId()
  const { upload_id } = await begin(undefined, run_id)
  await put(upload_id, 1, 'x', run_id)
  const other = { upload_id, by_run_id: newId() }
  await refusedWith('not_found', () => put(upload_id, 2, 'x', newId()))
  await refusedWith('not_found', () => abortUpload(deps, other, cause))
  await refusedWith('not_found', () => completeUpload(deps, other, cause))
  assert.is((await completeUpload(deps, { upload_id }, cause)).created_by_run_id, run_id)
})

uploads('of another environment does not exist (I7)', async () => {
  const { upload_id } = await begin()
  const other = callerOf(newId()).cause
  await refusedWith('not_found', () => completeUpload(deps, { upload_id }, other))
  await refusedWith('not_found', () => abortUpload(deps, { upload_id }, other))
})

uploads('leaves nothing when it is cancelled', async () => {
  const { upload_id } = await begin()
  await put(upload_id, 1, 'x')
  await abortUpload(deps, { upload_id }, cause)
  await refusedWith('not_found', () => completeUpload(deps, { upload_id }, cause))
  await refusedWith('not_found', () => abortUpload(deps, { upload_id }, cause))
})
uploads.run()

const files = suite('storeFile and deleteFile')

const store = (path: unknown, content: string, content_type: unknown = '') =>
  storeFile(
    deps,
    {
      path,
      content_type,
      run_id: null,
      announced: null,
      content: () => Readable.from([Buffer.from(content)]),
    },
    cause,
  )

for (const path of ['', '/a', 'a/', 'a//b', 'a/../b', '.', 'a\u0000', 'ä'.repeat(513), 7])
  files(`refuse the path ${JSON.stringify(path).slice(0, 20)}`, () =>
    refusedWith('bad_request', () => store(path, 'x')),
  )

for (const type of ['nonsense', 'a/', '/b', 'text/plain charset', `a/${'b'.repeat(300)}`])
  files(`refuse the type ${type.slice(0, 20)}`, () => refusedWith('bad_request', () => store('a', 'x', type)))

files('keep the id of a file whose content is replaced, and remove the old content', async () => {
  const first = await store('replaced', 'old')
  const second = await store('replaced', 'new')
  assert.is(second.file_id, first.file_id)
  assert.is(await contentAt('replaced'), 'new')
  assert.is(await node.blobs.head(first.key), null)
})

files('remove the content, and leave a file that replaced the deleted one', async () => {
  const { path, file_id, key } = await store('deleted', 'x')
  await deleteFile(deps, { path, file_id }, cause)
  assert.is(await node.blobs.head(key), null)
  await refusedWith('not_found', () => deleteFile(deps, { path, file_id }, cause))
  await store('deleted', 'again')
  await refusedWith('not_found', () => deleteFile(deps, { path, file_id }, cause))
  assert.is(await contentAt('deleted'), 'again')
})
files.after(() => node.close())
files.run()
