import * as assert from 'uvu/assert'
import { deleteFile } from '../../../src/commands/files/deleteFile.ts'
import { suite } from '../../support/suite.ts'
import { refusedWith } from '../refusedWith.ts'
import { openFiles } from './openFiles.ts'

const { node, deps, cause, contentAt, store } = await openFiles()

const files = suite('storeFile and deleteFile')

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
