import { Readable } from 'node:stream'
import * as assert from 'uvu/assert'
import { storeFile } from '../../src/commands/files/storeFile.ts'
import type { Blobs } from '../../src/ports/blobs.ts'
import type { HostCall } from '../../src/ports/runtime.ts'
import { wantedFile } from '../commands/files/wantedFile.ts'
import { refusedWith } from '../commands/refusedWith.ts'
import { suite } from '../support/suite.ts'
import { openCalls } from './openCalls.ts'

const { node, env, begin, ask } = await openCalls()
const { deps } = node
const plan = await begin()

const put = (path: string, content: string) =>
  storeFile(
    deps,
    wantedFile(path, () => Readable.from([Buffer.from(content)])),
    env.caller.cause,
  )
const get = (path: string): HostCall => ({ op: 'files', action: 'get', params: { path } })
const read = (path: string, etag: string): HostCall => ({
  op: 'files',
  action: 'read',
  params: { path, etag, from: 0 },
})

/** The blobs of a node on which others write a path each time before its content is opened, `times` times. */
const overtakenBy = (write: () => Promise<unknown>, times: number): Blobs => {
  let left = times
  return {
    ...deps.blobs,
    get: async (key, range) => {
      if (left-- > 0) await write()
      return deps.blobs.get(key, range)
    },
  }
}

const contentOf = (reply: unknown) =>
  Buffer.from((reply as { content_base64: string }).content_base64, 'base64').toString()

const files = suite('files that a function reads')
files.after(() => node.close())

files('a file that others replace meanwhile is read with its new content', async () => {
  await put('counter', '1')
  const blobs = overtakenBy(() => put('counter', '2'), 1)
  assert.is(contentOf(await ask(plan, get('counter'), { blobs })), '2')
})

files('the rest of a file that others replace meanwhile is refused as changed', async () => {
  const { etag } = await put('large', 'one')
  const blobs = overtakenBy(() => put('large', 'two'), 1)
  await refusedWith('conflict', () => ask(plan, read('large', etag), { blobs }))
})

files('a file that others replace each time is unavailable', async () => {
  let writes = 0
  await put('busy', '0')
  const blobs = overtakenBy(() => put('busy', String(++writes)), Infinity)
  await refusedWith('unavailable', () => ask(plan, get('busy'), { blobs }))
})

files('a file whose content is missing in the blobs is unavailable, and its blob is named', async () => {
  const { key, etag } = await put('lost', 'content')
  await deps.blobs.remove(key)
  for (const call of [get('lost'), read('lost', etag)]) {
    const { message } = await refusedWith('unavailable', () => ask(plan, call))
    assert.match(message, key)
  }
})

files('a file that others delete meanwhile is not found', async () => {
  await put('gone', 'content')
  const remove: HostCall = { op: 'files', action: 'delete', params: { path: 'gone' } }
  const blobs = overtakenBy(() => ask(plan, remove), 1)
  const { message } = await refusedWith('not_found', () => ask(plan, get('gone'), { blobs }))
  assert.match(message, 'No file "gone"')
})

files.run()
