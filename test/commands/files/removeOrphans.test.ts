import { text } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { isAppError } from '../../../src/errors.ts'
import { abortUpload } from '../../../src/commands/files/abortUpload.ts'
import { beginUpload } from '../../../src/commands/files/beginUpload.ts'
import { completeUpload } from '../../../src/commands/files/completeUpload.ts'
import { deleteFile } from '../../../src/commands/files/deleteFile.ts'
import { fileAt } from '../../../src/commands/files/fileAt.ts'
import { putPart } from '../../../src/commands/files/putPart.ts'
import { readFile } from '../../../src/commands/files/readFile.ts'
import { storeFile } from '../../../src/commands/files/storeFile.ts'
import { uploadFor } from '../../../src/commands/files/uploadFor.ts'
import { contentKey } from '../../../src/content/contentKey.ts'
import type { FileQuota } from '../../../src/content/fileQuota.ts'
import { newId } from '../../../src/ids.ts'
import type { Blobs } from '../../../src/ports/blobs.ts'
import { expireUploads } from '../../../src/commands/files/expireUploads.ts'
import { removeOrphans } from '../../../src/commands/files/removeOrphans.ts'
import { anyRoom } from '../../support/rooms.ts'
import { suite } from '../../support/suite.ts'
import { cause, type Node, openNode } from '../../support/openNode.ts'
import { wantedFile } from './wantedFile.ts'

const DAY_MS = 24 * 3600_000
const quota: FileQuota = {
  maxFileBytes: () => 100 << 20,
  checkRoom: () => Promise.resolve(),
  admitUpload: (_, begin) => begin(),
  roomFor: anyRoom,
}

type FileDeps = Parameters<typeof storeFile>[0]

const store = (deps: FileDeps, path: string, content: string) =>
  storeFile(
    deps,
    wantedFile(path, () => bytes(content), 'text/plain'),
    cause,
  )

const begin = async (deps: FileDeps, path: string, expected_size?: number): Promise<string> =>
  (
    await beginUpload(
      deps,
      { path, content_type: 'text/plain', expected_size, run_id: null },
      { cause, newId },
    )
  ).upload_id

const put = (deps: FileDeps, upload_id: string) =>
  putPart(deps, { upload_id, part_number: 1, size: 4, content: bytes('part') }, cause)

async function* bytes(content: string) {
  yield Buffer.from(content)
}

/** Blobs that remove nothing, as if the process died before. */
const unremovable = (blobs: Blobs): Blobs => ({
  ...blobs,
  remove: () => Promise.reject(new Error('died')),
  abortUpload: () => Promise.reject(new Error('died')),
})

interface Context {
  node: Node
  files: FileDeps
  /** As `files`, of a process that dies before it removes anything. */
  dying: FileDeps
  deps: Parameters<typeof removeOrphans>[0] & Parameters<typeof expireUploads>[0]
}

const sweep = suite<Context>('the sweep of files')
sweep.before.each(async (context) => {
  const node = await openNode()
  const { aggregates, views } = node
  const files = { aggregates, blobs: node.blobs, store: node.store, quotas: quota }
  Object.assign(context, { node, files, dying: { ...files, blobs: unremovable(node.blobs) } })
  context.deps = { blobs: node.blobs, aggregates, store: node.store, views }
})
sweep.after.each(({ node }) => node.close())

const keysIn = async ({ blobs }: Node) => (await Array.fromAsync(blobs.list('files/'))).map(({ key }) => key)

sweep(
  'removes content that a crash left behind: replaced, deleted or never named by a fact',
  async (context) => {
    const { node, files, dying, deps } = context
    await store(files, 'kept', 'kept')
    await store(dying, 'replaced', 'old')
    await store(dying, 'replaced', 'new')
    await deleteFile(dying, await store(dying, 'deleted', 'x'), cause)
    await node.blobs.put(contentKey('env', newId()), Buffer.from('never named'))
    assert.is((await keysIn(node)).length, 5)

    assert.is(await removeOrphans(deps, { now: clock.now() + 3 * DAY_MS }), 3)
    const [kept, replaced] = [await fileAt(files, 'env', 'kept'), await fileAt(files, 'env', 'replaced')]
    assert.equal((await keysIn(node)).sort(), [kept?.key, replaced?.key].sort())
    if (replaced) assert.is(await text((await readFile(files, replaced)).chunks), 'new')
    assert.is(await removeOrphans(deps, { now: clock.now() + 3 * DAY_MS }), 0)
  },
)

sweep('leaves content alone whose fact may be on its way', async ({ node, deps }) => {
  await node.blobs.put(contentKey('env', newId()), Buffer.from('just now'))
  await node.blobs.put('payloads/ab/other.json', Buffer.from('not a file'))
  assert.is(await removeOrphans(deps, { now: clock.now() + DAY_MS }), 0)
  assert.is((await keysIn(node)).length, 1)
  assert.is(await removeOrphans(deps, { now: clock.now() + 3 * DAY_MS }), 1)
  assert.ok(await node.blobs.head('payloads/ab/other.json'))
})

sweep('keeps the content of a file that the read model lacks', async ({ node, files, dying, deps }) => {
  const { key } = await store(files, 'kept', 'kept')
  await store(dying, 'replaced', 'old')
  const { key: now } = await store(dying, 'replaced', 'new')
  const lacking = { ...deps.views.files, find: async () => ({ items: [], total: 0 }) }
  const incomplete = { ...deps, views: { ...deps.views, files: lacking } }
  assert.is(await removeOrphans(incomplete, { now: clock.now() + 3 * DAY_MS }), 1)
  assert.equal((await keysIn(node)).toSorted(), [key, now].toSorted())
})

sweep('ends uploads whose time is over, and no others', async ({ node, files, deps }) => {
  const upload_id = await begin(files, 'late')
  await put(files, upload_id)
  assert.is(await expireUploads(deps, { now: clock.now() + DAY_MS - 60_000 }), 0)
  assert.is(await expireUploads(deps, { now: clock.now() + DAY_MS + 60_000 }), 1)
  assert.equal(await Array.fromAsync(node.blobs.listUploads()), [])
  const refused = await uploadFor(files, 'env', { upload_id }).catch((error: unknown) => error)
  assert.ok(isAppError(refused, 'not_found'))
  assert.is(await expireUploads(deps, { now: clock.now() + 2 * DAY_MS }), 0)
})

sweep('aborts uploads that a crash left behind in the blobs', async ({ node, dying, deps }) => {
  const upload_id = await begin(dying, 'left')
  await abortUpload(dying, { upload_id }, cause)
  for (const key of ['builds/p/zip', 'payloads/e/day/value', 'replies/e/day/key', 'elsewhere/kept'])
    await node.blobs.createUpload(key) // of large values, which their process stored in parts
  await removeOrphans(deps, { now: clock.now() + DAY_MS })
  assert.is((await Array.fromAsync(node.blobs.listUploads())).length, 5)
  await removeOrphans(deps, { now: clock.now() + 3 * DAY_MS })
  const left = await Array.fromAsync(node.blobs.listUploads())
  assert.equal(
    left.map(({ key }) => key),
    ['elsewhere/kept'],
  )
})

sweep('is not needed when all goes well', async ({ node, files }) => {
  await store(files, 'a', '1')
  await store(files, 'a', '2')
  const upload_id = await begin(files, 'a', 4)
  await put(files, upload_id)
  const file = await completeUpload(files, { upload_id, rights: null }, cause)
  assert.equal(await keysIn(node), [file.key])
  assert.equal(await Array.fromAsync(node.blobs.listUploads()), [])
})

sweep('finds an upload whose server died between its steps complete', async ({ node, files }) => {
  const upload_id = await begin(files, 'a')
  await put(files, upload_id)
  const { upload, parts } = await uploadFor(files, 'env', { upload_id })
  await node.blobs.completeUpload(
    upload.key,
    upload.blob_upload_id,
    [...parts.values()].map(({ part_number, blob_etag }) => ({ part_number, etag: blob_etag })),
  )
  assert.is((await completeUpload(files, { upload_id, rights: null }, cause)).size, 4)
  assert.is((await fileAt(files, 'env', 'a'))?.key, upload.key)
})

sweep.run()
