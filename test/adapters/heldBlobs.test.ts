import { readdirSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { openBlobs } from '../../src/adapters/embedded/blobs.ts'
import { isAppError } from '../../src/errors.ts'
import type { Blobs, HeldBlobs } from '../../src/ports/blobs.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const held = suite<{ dir: string; blobs: Blobs }>('held blobs')
held.before.each(async (context) => {
  context.dir = tempDir()
  context.blobs = await openBlobs({ dir: context.dir })
})
held.after.each(({ blobs }) => blobs.close())

const all = () => true
const hold = (blobs: Blobs, keeps: (key: string) => boolean = all): HeldBlobs => {
  const found = blobs.hold?.(keeps)
  assert.ok(found)
  return found
}
const textAt = async (blobs: Pick<Blobs, 'get'>, key: string) =>
  (await buffer(await blobs.get(key))).toString()
const isMissingIn = (blobs: Pick<Blobs, 'get'>, key: string): Promise<boolean> =>
  blobs.get(key).then(
    (stream) => {
      stream.destroy()
      return false
    },
    (error: unknown) => isAppError(error, 'not_found'),
  )
const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)

held('remain for the holder after their removal, and for nobody else', async ({ blobs }) => {
  await blobs.put('a/b', Buffer.from('kept'))
  const holder = hold(blobs)
  await blobs.remove('a/b')
  assert.is(await textAt(holder, 'a/b'), 'kept')
  assert.ok(await isMissingIn(blobs, 'a/b'))
  assert.is(await blobs.head('a/b'), null)
  assert.equal(await Array.fromAsync(blobs.list('')), [])
  assert.equal(await Array.fromAsync(holder.list()), [{ key: 'a/b', size: 4 }])
  await holder.release()
})

held('are removed when the last holder releases them', async ({ dir, blobs }) => {
  await blobs.put('a', Buffer.from('one'))
  const [first, second] = [hold(blobs), hold(blobs)]
  await blobs.remove('a')
  await first.release()
  assert.is(await textAt(second, 'a'), 'one')
  await second.release()
  assert.ok(await isMissingIn(second, 'a'))
  assert.equal(filesIn(dir), [])
})

held('can be stored again, and later holders do not see what was removed before', async ({ blobs }) => {
  await blobs.put('a', Buffer.from('one'))
  await blobs.remove('a')
  const holder = hold(blobs)
  assert.ok(await isMissingIn(holder, 'a'))
  await blobs.put('a', Buffer.from('two'))
  await blobs.remove('a')
  await blobs.put('a', Buffer.from('three'))
  assert.is(await textAt(holder, 'a'), 'three')
  await blobs.remove('a')
  assert.is(await textAt(holder, 'a'), 'three')
  await holder.release()
})

held('are only those that the holder chooses: others are removed at once', async ({ dir, blobs }) => {
  await blobs.put('keys/1', Buffer.from('secret'))
  const holder = hold(blobs, (key) => !key.startsWith('keys/'))
  await blobs.remove('keys/1')
  assert.ok(await isMissingIn(holder, 'keys/1'))
  assert.equal(filesIn(dir), [])
  await holder.release()
})

held('are removed by the next start when the process was killed', async ({ dir, blobs }) => {
  await blobs.put('a', Buffer.from('one'))
  hold(blobs)
  await blobs.remove('a')
  await (await openBlobs({ dir })).close()
  assert.equal(filesIn(dir), [])
})
held.run()
