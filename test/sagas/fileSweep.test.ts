import { text } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { isAppError } from '../../src/errors.ts'
import { FileUploads } from '../../src/content/fileUploads.ts'
import { contentKey, Files } from '../../src/content/files.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import type { Blobs } from '../../src/ports/blobs.ts'
import { expireUploads, removeOrphans } from '../../src/sagas/fileSweep.ts'
import { suite } from '../support/suite.ts'
import { cause, type Node, openNode } from '../support/openNode.ts'

const DAY_MS = 24 * 3600_000
const quota = { maxFileBytes: () => 100 << 20, checkRoom: () => Promise.resolve() }
const writing = (path: string) => ({ env_id: 'env', path, content_type: 'text/plain', run_id: null, cause })

async function* bytes(content: string) {
  yield Buffer.from(content)
}

/** Blobs of which nothing can be removed, as when the process died before it came to that. */
const unremovable = (blobs: Blobs): Blobs => ({
  ...blobs,
  remove: () => Promise.reject(new Error('died')),
  abortUpload: () => Promise.reject(new Error('died')),
})

interface Context {
  node: Node
  files: Files
  uploads: FileUploads
  /** As `files` and `uploads`, and dying before they remove anything. */
  dying: { files: Files; uploads: FileUploads }
  deps: Parameters<typeof removeOrphans>[0]
}

const sweep = suite<Context>('the sweep of files')
sweep.before.each(async (context) => {
  const node = await openNode()
  const { aggregates, views } = node
  const open = (blobs: Blobs) => {
    const files = new Files({ aggregates, blobs, quota })
    return { files, uploads: new FileUploads({ aggregates, blobs, files }) }
  }
  const { files, uploads } = open(node.blobs)
  const dying = open(unremovable(node.blobs))
  Object.assign(context, { node, files, uploads, dying })
  context.deps = { blobs: node.blobs, uploads, views, logger: silent }
})
sweep.after.each(({ node }) => node.close())

const keysIn = async ({ blobs }: Node) => (await Array.fromAsync(blobs.list('files/'))).map(({ key }) => key)

sweep(
  'removes content that a crash left behind: replaced, deleted or never named by a fact',
  async (context) => {
    const { node, files, dying, deps } = context
    await files.write(writing('kept'), bytes('kept'), 100)
    await dying.files.write(writing('replaced'), bytes('old'), 100)
    await dying.files.write(writing('replaced'), bytes('new'), 100)
    const deleted = await dying.files.write(writing('deleted'), bytes('x'), 100)
    await dying.files.remove({ ...deleted, env_id: 'env' }, cause)
    await node.blobs.put(contentKey('env', newId()), Buffer.from('never named'))
    assert.is((await keysIn(node)).length, 5)

    assert.is(await removeOrphans(deps, clock.now() + 3 * DAY_MS), 3)
    const [kept, replaced] = [await files.at('env', 'kept'), await files.at('env', 'replaced')]
    assert.equal((await keysIn(node)).sort(), [kept?.key, replaced?.key].sort())
    if (replaced) assert.is(await text(await files.read(replaced)), 'new')
    assert.is(await removeOrphans(deps, clock.now() + 3 * DAY_MS), 0)
  },
)

sweep('leaves content alone whose fact may be on its way', async ({ node, deps }) => {
  await node.blobs.put(contentKey('env', newId()), Buffer.from('just now'))
  await node.blobs.put('payloads/ab/other.json', Buffer.from('not a file'))
  assert.is(await removeOrphans(deps, clock.now() + DAY_MS), 0)
  assert.is((await keysIn(node)).length, 1)
  assert.is(await removeOrphans(deps, clock.now() + 3 * DAY_MS), 1)
  assert.ok(await node.blobs.head('payloads/ab/other.json'))
})

sweep('ends uploads whose time is over, and no others', async ({ node, uploads, deps }) => {
  const { upload_id } = await uploads.begin(writing('late'), undefined)
  const part = { part_number: 1, size: 4, content: bytes('part') }
  await uploads.putPart(await uploads.get('env', upload_id), part, cause)
  assert.is(await expireUploads(deps, clock.now() + DAY_MS - 60_000), 0)
  assert.is(await expireUploads(deps, clock.now() + DAY_MS + 60_000), 1)
  assert.equal(await Array.fromAsync(node.blobs.listUploads()), [])
  const refused = await uploads.get('env', upload_id).catch((error: unknown) => error)
  assert.ok(isAppError(refused, 'not_found'))
  assert.is(await expireUploads(deps, clock.now() + 2 * DAY_MS), 0)
})

sweep('aborts uploads that a crash left behind in the blobs', async ({ node, dying, deps }) => {
  const { upload_id } = await dying.uploads.begin(writing('left'), undefined)
  await dying.uploads.abort(await dying.uploads.get('env', upload_id), 'asked', cause)
  await node.blobs.createUpload('builds/elsewhere')
  await removeOrphans(deps, clock.now() + DAY_MS)
  assert.is((await Array.fromAsync(node.blobs.listUploads())).length, 2)
  await removeOrphans(deps, clock.now() + 3 * DAY_MS)
  const left = await Array.fromAsync(node.blobs.listUploads())
  assert.equal(
    left.map(({ key }) => key),
    ['builds/elsewhere'],
  )
})

sweep('is not needed when all goes well', async ({ node, files, uploads }) => {
  await files.write(writing('a'), bytes('1'), 100)
  await files.write(writing('a'), bytes('2'), 100)
  const { upload_id } = await uploads.begin(writing('a'), 4)
  const part = { part_number: 1, size: 4, content: bytes('part') }
  await uploads.putPart(await uploads.get('env', upload_id), part, cause)
  const file = await uploads.complete(await uploads.get('env', upload_id), cause)
  assert.equal(await keysIn(node), [file.key])
  assert.equal(await Array.fromAsync(node.blobs.listUploads()), [])
})

sweep('finds an upload whose server died between its steps complete', async ({ node, uploads, files }) => {
  const { upload_id } = await uploads.begin(writing('a'), undefined)
  const part = { part_number: 1, size: 4, content: bytes('part') }
  await uploads.putPart(await uploads.get('env', upload_id), part, cause)
  const pending = await uploads.get('env', upload_id)
  const { upload, parts } = pending
  await node.blobs.completeUpload(
    upload.key,
    upload.blob_upload_id,
    [...parts.values()].map(({ part_number, blob_etag }) => ({ part_number, etag: blob_etag })),
  )
  assert.is((await uploads.complete(pending, cause)).size, 4)
  assert.is((await files.at('env', 'a'))?.key, upload.key)
})

sweep.run()
