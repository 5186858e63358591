import { Readable } from 'node:stream'
import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { abortUpload } from '../../../src/commands/files/abortUpload.ts'
import { beginUpload, UPLOAD_EXPIRES_MS } from '../../../src/commands/files/beginUpload.ts'
import { completeUpload as completeAs } from '../../../src/commands/files/completeUpload.ts'
import { deleteFile } from '../../../src/commands/files/deleteFile.ts'
import { expireUpload } from '../../../src/commands/files/expireUpload.ts'
import { fileAt } from '../../../src/commands/files/fileAt.ts'
import { putPart } from '../../../src/commands/files/putPart.ts'
import { type UploadRef, uploadFor } from '../../../src/commands/files/uploadFor.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { compilePermissions } from '../../../src/access/permissions.ts'
import { AppError, isAppError } from '../../../src/errors.ts'
import type { File } from '../../../src/events/file.ts'
import type { EnvCause } from '../../../src/events/event.ts'
import type { EventType } from '../../../src/events/index.ts'
import { streamOf } from '../../../src/events/streams.ts'
import type { Upload } from '../../../src/events/upload.ts'
import { newId } from '../../../src/ids.ts'
import type { Blobs } from '../../../src/ports/blobs.ts'
import { suite } from '../../support/suite.ts'
import { forwarding } from '../../support/forwarding.ts'
import { callerOf } from '../openCommands.ts'
import { openFiles } from './openFiles.ts'
import { refusedWith } from '../refusedWith.ts'

const { node, deps, env_id, caller, cause, contentAt, store } = await openFiles()

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
const uploadKeys = async (upload_id: string): Promise<Upload> => {
  for await (const { event } of node.store.read(streamOf.upload(upload_id)))
    if (event.type === 'UploadBegun') return event
  throw new Error('Expected an upload')
}
/** Completes an upload for a writer that may write every file. */
const completeUpload = (by: Parameters<typeof completeAs>[0], ref: UploadRef, cause: EnvCause) =>
  completeAs(by, { ...ref, rights: null }, cause)
/** Completes an upload on a node that dies before it stores a fact of the type. */
const dying = (type: EventType, ref: { upload_id: string }, blobs: Blobs = node.blobs) => {
  const store = forwarding(node.store, {
    append: (stream, events, expected) =>
      events.some(({ event }) => event.type === type)
        ? Promise.reject(new AppError('unavailable', 'The node is dead'))
        : node.store.append(stream, events, expected),
  })
  const dead = { ...deps, blobs, store, aggregates: openAggregates(store) }
  return refusedWith('unavailable', () => completeUpload(dead, ref, cause))
}

const uploads = suite('an upload in parts')

uploads('becomes a file; a repeated completion resolves with the same file', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'content')
  const file = await completeUpload(deps, { upload_id }, cause)
  assert.equal(await completeUpload(deps, { upload_id }, cause), file)
  assert.is(await contentAt(path), 'content')
})

uploads('becomes a file only if its writer may create it then, or update the one that is there', async () => {
  const { upload_id, path } = await begin()
  const rights = compilePermissions({ 'file:*': ['create'] })
  await put(upload_id, 1, 'content')
  const { file_id } = await store(path, 'before')
  await refusedWith('forbidden', () => completeAs(deps, { upload_id, rights }, cause))
  assert.is(await contentAt(path), 'before')
  await deleteFile(deps, { path, file_id }, cause)
  const file = await completeAs(deps, { upload_id, rights }, cause)
  assert.equal(await completeAs(deps, { upload_id, rights }, cause), file)
  assert.is(await contentAt(path), 'content')
})

uploads('that is completed and cancelled at once ends in one way', async () => {
  const elsewhere = { ...deps, aggregates: openAggregates(node.store) }
  for (let round = 0; round < 20; round++) {
    const { upload_id, path } = await begin()
    await put(upload_id, 1, 'content')
    if (round % 2) await store(path, 'before')
    const [completed, cancelled] = await Promise.allSettled([
      completeUpload(deps, { upload_id }, cause),
      abortUpload(elsewhere, { upload_id }, cause),
    ])
    const before = round % 2 ? 'before' : null
    assert.is.not(completed.status, cancelled.status)
    assert.is(await contentAt(path), completed.status === 'fulfilled' ? 'content' : before)
  }
})

uploads('that was cancelled while its parts were joined leaves the file as it was', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'content')
  await store(path, 'before')
  const blobs: Blobs = {
    ...node.blobs,
    async completeUpload(...args) {
      const joined = await node.blobs.completeUpload(...args)
      await abortUpload(deps, { upload_id }, cause)
      return joined
    },
  }
  await refusedWith('not_found', () => completeUpload({ ...deps, blobs }, { upload_id }, cause))
  assert.is(await contentAt(path), 'before')
  assert.is(await node.blobs.head((await uploadKeys(upload_id)).key), null)
})

uploads(
  'contains the later of two parts of one number, also if their facts are in the other order',
  async () => {
    const { upload_id, path } = await begin()
    const [stored, continued] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const blobs: Blobs = {
      ...node.blobs,
      async putPart(...args) {
        const part = await node.blobs.putPart(...args)
        stored.resolve()
        await continued.promise
        return part
      },
    }
    const content = Readable.from([Buffer.from('first')])
    const first = putPart({ ...deps, blobs }, { upload_id, part_number: 1, size: 5, content }, cause)
    await stored.promise
    const { etag } = await put(upload_id, 1, 'the second')
    continued.resolve()
    await first
    const file = await completeUpload(deps, { upload_id }, cause)
    assert.is(file.size, 10)
    assert.is(await contentAt(path), 'the second')
    assert.equal(await completeUpload(deps, { upload_id }, cause), file)
    const other = await begin()
    assert.is((await put(other.upload_id, 1, 'the second')).etag, etag)
    assert.is((await completeUpload(deps, { upload_id: other.upload_id }, cause)).etag, file.etag)
  },
)

uploads('cannot be cancelled once its parts are joined', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'content')
  await dying('FileStored', { upload_id })
  await refusedWith('not_found', () => abortUpload(deps, { upload_id }, cause))
  assert.is((await completeUpload(deps, { upload_id }, cause)).size, 7)
  assert.is(await contentAt(path), 'content')
})

uploads('whose file has other content by now is completed again with its own size and ETag', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'content')
  const file = await completeUpload(deps, { upload_id }, cause)
  await store(path, 'other content')
  assert.equal(await completeUpload(deps, { upload_id }, cause), file)
  assert.is(await contentAt(path), 'other content')
})

uploads('whose node died after its file was stored does not replace later content', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'content')
  await dying('UploadCompleted', { upload_id })
  await store(path, 'other content')
  assert.is((await completeUpload(deps, { upload_id }, cause)).size, 7)
  assert.is(await contentAt(path), 'other content')
})

uploads('that expires while it is completed becomes a file', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'content')
  let joined: Promise<unknown> | undefined
  const store = forwarding(node.store, {
    async append(stream, events, expected) {
      if (events.some(({ event }) => event.type === 'UploadAborted'))
        await (joined ??= dying('FileStored', { upload_id }))
      return node.store.append(stream, events, expected)
    },
  })
  const sweeping = { ...deps, store, aggregates: openAggregates(store) }
  assert.is(await expireUpload(sweeping, { env_id, upload_id }), false)
  assert.is((await completeUpload(deps, { upload_id }, cause)).size, 7)
  assert.is(await contentAt(path), 'content')
})

uploads('keeps its content when too many other writers change its path', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'content')
  const store = forwarding(node.store, {
    append: (stream, events, expected) =>
      events.some(({ event }) => event.type === 'FileStored')
        ? Promise.reject(
            new AppError('wrong_revision', 'lost', { data: { stream, expected, actual: expected } }),
          )
        : node.store.append(stream, events, expected),
  })
  const crowded = { ...deps, store, aggregates: openAggregates(store) }
  await refusedWith('conflict', () => completeUpload(crowded, { upload_id }, cause))
  await completeUpload(deps, { upload_id }, cause)
  assert.is(await contentAt(path), 'content')
})

for (const [what, dies, kept] of [
  ['before its content became a file', 'FileStored', null],
  ['after its content became a file', 'UploadCompleted', 'content'],
] as const)
  uploads(`whose node died ${what} ends when it expires`, async () => {
    const { upload_id, path } = await begin()
    await put(upload_id, 1, 'content')
    await dying(dies, { upload_id })
    assert.is(await expireUpload(deps, { env_id, upload_id }), false) // its node may be slow
    const { now } = clock
    clock.now = () => now() + UPLOAD_EXPIRES_MS + 2 * 3600_000
    try {
      assert.is(await expireUpload(deps, { env_id, upload_id }), kept === null)
    } finally {
      clock.now = now
    }
    assert.is(await contentAt(path), kept)
    await refusedWith('not_found', () => abortUpload(deps, { upload_id }, cause))
  })

uploads('whose content becomes a file in the moment in which it ends keeps its content', async () => {
  const { upload_id, path, key } = await begin()
  await put(upload_id, 1, 'content')
  await dying('FileStored', { upload_id })
  let completed: Promise<unknown> | undefined
  const store = forwarding(node.store, {
    async append(stream, events, expected) {
      if (events.some(({ event }) => event.type === 'UploadAborted'))
        await (completed ??= dying('UploadCompleted', { upload_id }))
      return node.store.append(stream, events, expected)
    },
  })
  const sweeping = { ...deps, store, aggregates: openAggregates(store) }
  const { now } = clock
  clock.now = () => now() + UPLOAD_EXPIRES_MS + 2 * 3600_000
  try {
    await expireUpload(sweeping, { env_id, upload_id })
  } finally {
    clock.now = now
  }
  assert.ok(completed)
  assert.is((await fileAt(deps, env_id, path))?.key, key)
  assert.is(await contentAt(path), 'content')
})

uploads('whose parts were joined in time can be completed after it expired', async () => {
  const { upload_id, path } = await begin()
  await put(upload_id, 1, 'content')
  await dying('FileStored', { upload_id })
  const { now } = clock
  clock.now = () => now() + UPLOAD_EXPIRES_MS + 60_000
  try {
    await completeUpload(deps, { upload_id }, cause)
  } finally {
    clock.now = now
  }
  assert.is(await contentAt(path), 'content')
})

const contentLate = { size: 5, etag: '"late"' }

/** Blobs that join the parts of an upload while the fact of another part is stored. */
const withLatePart = (upload_id: string, part_number: number, late = contentLate): Blobs => ({
  ...node.blobs,
  async completeUpload(...args) {
    const part = { part_number, ...late, blob_etag: 'late' }
    const command = { type: 'AddPart', part, now: clock.iso() } as const
    await deps.aggregates.uploads.handle(streamOf.upload(upload_id), command, cause)
    return node.blobs.completeUpload(...args)
  },
})

uploads(
  'resolves with the same file again, although a part arrived while its parts were joined',
  async () => {
    const { upload_id, path } = await begin()
    await put(upload_id, 1, 'content')
    const file = await completeUpload({ ...deps, blobs: withLatePart(upload_id, 3) }, { upload_id }, cause)
    assert.equal(await completeUpload(deps, { upload_id }, cause), file)
    assert.is(await contentAt(path), 'content')
  },
)

/** An upload whose node died at the fact of a type, after its parts were joined and while another part arrived. */
const diedWithLatePart = async (type: EventType, part_number: number, late = contentLate) => {
  const { upload_id, path, key } = await begin()
  await put(upload_id, 1, 'content')
  await dying(type, { upload_id }, withLatePart(upload_id, part_number, late))
  assert.is((await node.blobs.head(key))?.size, 7)
  return { upload_id, path, key }
}

for (const [when, dies] of [
  ['before the fact that they are joined', 'UploadJoined'],
  ['after it', 'FileStored'],
] as const)
  for (const late of [1, 2, 3])
    uploads(
      `consists of the parts that were joined, although part ${late} arrived meanwhile and its node died ${when}`,
      async () => {
        const { upload_id, path } = await diedWithLatePart(dies, late)
        const other = await begin()
        await put(other.upload_id, 1, 'content')
        const { size, etag } = await completeUpload(deps, { upload_id }, cause)
        const expected = await completeUpload(deps, { upload_id: other.upload_id }, cause)
        assert.equal([size, etag], [7, expected.etag])
        assert.is(await contentAt(path), 'content')
        assert.is((await completeUpload(deps, { upload_id }, cause)).etag, etag)
      },
    )

for (const [how, end] of [
  ['is cancelled', (upload_id: string) => abortUpload(deps, { upload_id }, cause)],
  ['expires', (upload_id: string) => expireUpload(deps, { env_id, upload_id })],
] as const)
  uploads(`loses its content when it ${how} after its node died between join and fact`, async () => {
    const { upload_id, path, key } = await diedWithLatePart('UploadJoined', 2)
    await end(upload_id)
    assert.is(await node.blobs.head(key), null)
    await refusedWith('not_found', () => completeUpload(deps, { upload_id }, cause))
    assert.is(await contentAt(path), null)
  })

uploads('whose joined parts cannot be known after a crash is refused, and can be cancelled', async () => {
  const { upload_id, key } = await diedWithLatePart('UploadJoined', 1, { size: 7, etag: '"late"' })
  await refusedWith('conflict', () => completeUpload(deps, { upload_id }, cause))
  await abortUpload(deps, { upload_id }, cause)
  assert.is(await node.blobs.head(key), null)
})

for (const [what, former, expected] of [
  ['of the same size', 'another', 'conflict'],
  ['of another size', 'other', undefined],
] as const)
  uploads(
    `that is completed twice while a part ${what} is replaced has the ETag of its content`,
    async () => {
      const { upload_id, path } = await begin()
      await put(upload_id, 1, former)
      const [joined, refused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const fast: Blobs = {
        ...node.blobs,
        async completeUpload(...args) {
          const blob = await node.blobs.completeUpload(...args)
          joined.resolve()
          await refused.promise
          return blob
        },
      }
      const files: Promise<File>[] = []
      const slow: Blobs = {
        ...node.blobs,
        async completeUpload(...args) {
          await put(upload_id, 1, 'content')
          files.push(completeUpload({ ...deps, blobs: fast }, { upload_id }, cause))
          await joined.promise
          return node.blobs.completeUpload(...args)
        },
      }
      const late = completeUpload({ ...deps, blobs: slow }, { upload_id }, cause)
      const code = await late.then(
        () => undefined,
        (error: unknown) => isAppError(error) && error.code,
      )
      refused.resolve()
      const file = await files[0]
      const other = await begin()
      await put(other.upload_id, 1, 'content')
      const { etag } = await completeUpload(deps, { upload_id: other.upload_id }, cause)
      assert.equal([code, file?.etag], [expected, etag])
      assert.is(await contentAt(path), 'content')
    },
  )

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
uploads.after(() => node.close())
uploads.run()
