import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import * as assert from 'uvu/assert'
import { AppError } from '../../../src/errors.ts'
import type { Plan } from '../../../src/events/org.ts'
import { beginUpload } from '../../../src/commands/files/beginUpload.ts'
import { fileAt } from '../../../src/commands/files/fileAt.ts'
import { putPart, putSpooledPart } from '../../../src/commands/files/putPart.ts'
import { storeFile } from '../../../src/commands/files/storeFile.ts'
import type { FileQuota } from '../../../src/content/fileQuota.ts'
import type { Views } from '../../../src/projections/views.ts'
import { Quotas } from '../../../src/plans/quotas.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { newId } from '../../../src/ids.ts'
import { cause, type Node, openNode } from '../../support/openNode.ts'
import { refusedWith } from '../refusedWith.ts'
import { suite } from '../../support/suite.ts'
import { anyRoom, noRoom } from '../../support/rooms.ts'
import { tempDir } from '../../support/tempDir.ts'
import { wantedFile } from './wantedFile.ts'

const MB = 1 << 20

const quotaOf = (env: () => unknown): FileQuota => new Quotas({ directory: { env } } as unknown as Views)

const sizes = suite('SPEC.md, max file size')
for (const [plan, bytes] of [
  ['free', 100 * MB],
  ['starter', 1024 * MB],
  ['pro', 5 * 1024 * MB],
  ['scale', 50 * 1024 * MB],
  ['self_host', 50 * 1024 * MB],
] as const satisfies [Plan, number][]) {
  sizes(`of ${plan}`, () => {
    const env = () => ({ env_id: 'env', name: 'dev', org_id: 'o', org_slug: 'o', plan })
    assert.is(quotaOf(env).maxFileBytes('env'), bytes)
  })
}
sizes('of an environment that is not known yet is the least', () => {
  assert.is(quotaOf(() => undefined).maxFileBytes('env'), 100 * MB)
})
sizes.run()

type Deps = Parameters<typeof storeFile>[0]

interface Context {
  node: Node
  /** The dependencies of file commands under a quota; `asked` lists the requested numbers of bytes. */
  under: (quota: Partial<FileQuota>) => { deps: Deps; asked: number[] }
}

const content = (bytes: number) => Readable.from([Buffer.alloc(bytes)])
const store = (
  deps: Deps,
  path: string,
  bytes: number,
  limits: { announced?: number; maxBytes?: number } = {},
) => storeFile(deps, { ...wantedFile(path, () => content(bytes)), ...limits }, cause)

const quota = suite<Context>('the quota of files')
quota.before(async (context) => {
  const node = await openNode()
  const { aggregates, blobs, store } = node
  const under = (given: Partial<FileQuota>) => {
    const asked: number[] = []
    const quotas: FileQuota = {
      maxFileBytes: () => 100,
      checkRoom: () => Promise.resolve(),
      admitUpload: (_, begin) => begin(),
      roomFor: (_, replaced) => ({
        cover: (bytes) => Promise.resolve(void asked.push(bytes - (replaced?.bytes ?? 0))),
        release() {},
      }),
      ...given,
    }
    return { deps: { aggregates, blobs, quotas, store }, asked }
  }
  Object.assign(context, { node, under })
})
quota.after(({ node }) => node.close())

quota('is asked for the difference to the file before', async ({ under }) => {
  const { deps, asked } = under({})
  await store(deps, 'a', 10)
  await store(deps, 'a', 4)
  assert.equal(asked, [10, -6])
})

quota('is asked before the first byte when the caller announces the size', async ({ under }) => {
  const { deps } = under({ roomFor: noRoom })
  let begun = false
  const wanted = { path: 'early', content_type: '', run_id: null, rights: null, announced: 10 }
  await refusedWith('quota_exceeded', () =>
    storeFile(deps, { ...wanted, content: () => ((begun = true), content(10)) }, cause),
  )
  assert.not.ok(begun)
})

quota('leaves nothing of a file that it refuses', async ({ under, node }) => {
  const keys = () => Array.fromAsync(node.blobs.list('files/'))
  const before = (await keys()).length
  const { deps } = under({ roomFor: noRoom })
  await refusedWith('quota_exceeded', () => store(deps, 'b', 1))
  assert.is(await fileAt(deps, 'env', 'b'), null)
  assert.is((await keys()).length, before)
})

quota('refuses an upload in parts that announces too much, or becomes too large', async ({ under }) => {
  const { deps } = under({})
  const begin = (expected_size?: number) =>
    beginUpload(deps, { path: 'c', content_type: '', expected_size, run_id: null }, { cause, newId })
  await refusedWith('quota_exceeded', () => begin(101))
  const { upload_id } = await begin()
  const put = (part_number: number, size: number) =>
    putPart(deps, { upload_id, part_number, size, content: content(size) }, cause)
  await put(1, 60)
  await refusedWith('quota_exceeded', () => put(2, 41))
  await put(1, 50) // replaces the part of 60
  await put(2, 50)
})

quota('refuses a part of unknown size as soon as too much of it has arrived', async ({ under }) => {
  const refusing: Partial<FileQuota>[] = [
    {},
    {
      maxFileBytes: () => Infinity,
      roomFor: () => ({
        cover: (bytes) => (bytes > 100 ? noRoom().cover(bytes) : Promise.resolve()),
        release() {},
      }),
    },
  ]
  for (const given of refusing) {
    const { deps } = under(given)
    const wanted = { path: newId(), content_type: '', run_id: null }
    const { upload_id } = await beginUpload(deps, wanted, { cause, newId })
    let arrived = 0
    const endless = async function* () {
      for (;;) {
        arrived += 60
        yield await Promise.resolve(Buffer.alloc(60))
      }
    }
    const dir = tempDir()
    const part = { upload_id, part_number: 1, content: endless(), file: join(dir, 'part') }
    await refusedWith('quota_exceeded', () => putSpooledPart(deps, part, cause))
    assert.equal([arrived, readdirSync(dir)], [120, []])
  }
})

quota('takes no precedence over the limit of the caller', async ({ under }) => {
  const { deps } = under({})
  await refusedWith('payload_too_large', () => store(deps, 'd', 11, { maxBytes: 10 }))
  await refusedWith('payload_too_large', () => store(deps, 'd', 11, { maxBytes: 10, announced: 11 }))
})

quota.run()

const changes = suite<{ node: Node; deps: Deps }>('a change of files that the rate of changes refuses')
changes.before(async (context) => {
  const node = await openNode()
  const { blobs, store } = node
  const quotas: FileQuota = {
    maxFileBytes: () => 100,
    checkRoom: () => Promise.resolve(),
    admitUpload: (_, begin) => begin(),
    roomFor: anyRoom,
  }
  const refuse = () => Promise.reject(new AppError('rate_limit_exceeded', 'enough'))
  const deps = { aggregates: openAggregates(store, undefined, refuse), blobs, quotas, store }
  Object.assign(context, { node, deps })
})
changes.after(({ node }) => node.close())

/** Content of which nothing may be read. */
const unread = (): never => {
  throw new Error('Expected that the content is not read')
}

changes('leaves no content of a file, and reads none', async ({ node, deps }) => {
  const wanted = { path: 'a', content_type: '', run_id: null, rights: null, announced: 10, content: unread }
  await refusedWith('rate_limit_exceeded', () => storeFile(deps, wanted, cause))
  assert.equal(await Array.fromAsync(node.blobs.list('files/')), [])
})

changes('leaves no part, and reads none', async ({ node, deps }) => {
  const wanted = { path: 'b', content_type: '', run_id: null }
  const { upload_id } = await beginUpload({ ...deps, aggregates: node.aggregates }, wanted, {
    cause,
    newId,
  })
  let isRead = false
  const content = async function* () {
    isRead = true
    yield Buffer.alloc(10)
  }
  const part = { upload_id, part_number: 1, size: 10, content: content() }
  await refusedWith('rate_limit_exceeded', () => putPart(deps, part, cause))
  assert.not.ok(isRead)
})

changes('begins no upload', async ({ node, deps }) => {
  const before = await Array.fromAsync(node.blobs.listUploads())
  const wanted = { path: 'c', content_type: '', run_id: null }
  await refusedWith('rate_limit_exceeded', () => beginUpload(deps, wanted, { cause, newId }))
  assert.equal(await Array.fromAsync(node.blobs.listUploads()), before)
})

changes.run()
