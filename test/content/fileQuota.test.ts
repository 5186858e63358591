import { Readable } from 'node:stream'
import * as assert from 'uvu/assert'
import { AppError, isAppError } from '../../src/errors.ts'
import type { Plan } from '../../src/events/org.ts'
import { FileUploads } from '../../src/content/fileUploads.ts'
import { Files } from '../../src/content/files.ts'
import type { Quota } from '../../src/content/fileQuota.ts'
import type { Views } from '../../src/projections/views.ts'
import { Quotas } from '../../src/plans/quotas.ts'
import { cause, type Node, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'

const MB = 1 << 20

const quotaOf = (env: () => unknown): Quota => new Quotas({ directory: { env } } as unknown as Views)

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

interface Context {
  node: Node
  /** Files, and uploads of them, under a quota; `asked` holds the bytes it was asked for. */
  under: (quota: Partial<Quota>) => { files: Files; uploads: FileUploads; asked: number[] }
}

const writing = { env_id: 'env', path: 'a', content_type: 'text/plain', run_id: null, cause }
const content = (bytes: number) => Readable.from([Buffer.alloc(bytes)])
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

const quota = suite<Context>('a quota')
quota.before(async (context) => {
  const node = await openNode()
  const { aggregates, blobs } = node
  const under = (given: Partial<Quota>) => {
    const asked: number[] = []
    const quota: Quota = {
      maxFileBytes: () => 100,
      checkRoom: (_, bytes) => Promise.resolve(void asked.push(bytes)),
      ...given,
    }
    const files = new Files({ aggregates, blobs, quota })
    return { files, uploads: new FileUploads({ aggregates, blobs, files }), asked }
  }
  Object.assign(context, { node, under })
})
quota.after(({ node }) => node.close())

quota('is checked against the growth of a replaced file', async ({ under }) => {
  const { files, asked } = under({})
  await files.write(writing, content(10), 100)
  await files.write(writing, content(4), 100)
  assert.equal(asked, [10, -6])
})

quota('that is full leaves no received content behind', async ({ under, node }) => {
  const before = (await Array.fromAsync(node.blobs.list('files/'))).length
  const full = () => Promise.reject(new AppError('quota_exceeded', 'full'))
  const { files } = under({ checkRoom: full })
  assert.ok(
    isAppError(await failureOf(files.write({ ...writing, path: 'b' }, content(1), 100)), 'quota_exceeded'),
  )
  assert.is(await files.at('env', 'b'), null)
  assert.is((await Array.fromAsync(node.blobs.list('files/'))).length, before)
})

quota('refuses an upload in parts that says it will be too large, or becomes so', async ({ under }) => {
  const { uploads } = under({})
  assert.ok(isAppError(await failureOf(uploads.begin(writing, 101)), 'quota_exceeded'))
  const { upload_id } = await uploads.begin(writing, undefined)
  const put = async (part_number: number, size: number) =>
    uploads.putPart(await uploads.get('env', upload_id), { part_number, size, content: content(size) }, cause)
  await put(1, 60)
  assert.ok(isAppError(await failureOf(put(2, 41)), 'quota_exceeded'))
  await put(1, 50) // instead of the 60
  await put(2, 50)
})

quota('does not matter for a request that is too large anyway', async ({ under }) => {
  const { files } = under({})
  assert.ok(isAppError(await failureOf(files.write(writing, content(11), 10)), 'payload_too_large'))
})

quota.run()
