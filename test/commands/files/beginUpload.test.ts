import { Readable } from 'node:stream'
import * as assert from 'uvu/assert'
import { abortUpload } from '../../../src/commands/files/abortUpload.ts'
import { beginUpload } from '../../../src/commands/files/beginUpload.ts'
import { putPart } from '../../../src/commands/files/putPart.ts'
import type { FileQuota } from '../../../src/content/fileQuota.ts'
import { AppError } from '../../../src/errors.ts'
import type { Upload } from '../../../src/events/upload.ts'
import { newId } from '../../../src/ids.ts'
import type { Blobs } from '../../../src/ports/blobs.ts'
import { suite } from '../../support/suite.ts'
import type { Caller } from '../../../src/commands/deps.ts'
import { openFiles } from './openFiles.ts'
import { refusedWith } from '../refusedWith.ts'

const { node, deps, cause } = await openFiles()

const wantedAt = (path: string) => ({ path, content_type: 'text/plain', run_id: null })
const begin = (path: string, by: Caller) => beginUpload(deps, wantedAt(path), by)
/** The caller of a request that is repeated: its upload always has the same id. */
const repeating = () => {
  const id = newId()
  return { id, again: { cause, newId: () => id } }
}
const pending = async () => (await Array.fromAsync(node.blobs.listUploads())).length

/** The quotas of another node, which does not know what this one admits. */
const admittingBy = (admitUpload: FileQuota['admitUpload']): FileQuota => ({
  maxFileBytes: (env) => deps.quotas.maxFileBytes(env),
  checkRoom: (env, bytes) => deps.quotas.checkRoom(env, bytes),
  roomFor: (env, replaced) => deps.quotas.roomFor(env, replaced),
  admitUpload,
})

const begins = suite('the beginning of an upload in parts')

begins('happens once for one id', async () => {
  const { again } = repeating()
  assert.equal(await begin('once', again), await begin('once', again))
})

begins(
  'happens once for one id, also if a repeat arrives when its plan is used up by the first',
  async () => {
    const { again } = repeating()
    const quotas = admittingBy(async () => {
      await begin('last', again)
      throw new AppError('quota_exceeded', 'The first request used the last place')
    })
    const repeated = await beginUpload({ ...deps, quotas }, wantedAt('last'), again)
    assert.equal(repeated, await begin('last', again))
  },
)

begins('happens once for one id, also if another node does it meanwhile', async () => {
  const { again } = repeating()
  let first: Upload | undefined
  const blobs: Blobs = {
    ...node.blobs,
    async createUpload(key) {
      first = await begin('meanwhile', again)
      return node.blobs.createUpload(key)
    },
  }
  const before = await pending()
  const quotas = admittingBy((_, begins) => begins())
  assert.equal(await beginUpload({ ...deps, blobs, quotas }, wantedAt('meanwhile'), again), first)
  assert.is(await pending(), before + 1)
})

begins('gets a reply for a repeat after the upload was cancelled, which begins nothing', async () => {
  const { id, again } = repeating()
  await begin('ended', again)
  await abortUpload(deps, { upload_id: id }, cause)
  const before = await pending()
  const { upload_id, path } = await begin('ended', again)
  assert.equal({ upload_id, path }, { upload_id: id, path: 'ended' })
  assert.is(await pending(), before)
  await refusedWith('not_found', () =>
    putPart(
      deps,
      { upload_id: id, part_number: 1, size: 1, content: Readable.from([Buffer.from('x')]) },
      cause,
    ),
  )
})

begins.run()
