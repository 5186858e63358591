import * as assert from 'uvu/assert'
import { createClient, ServiceError } from '../../src/client/index.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

interface Context {
  server: TestServer
}

const uploads = suite<Context>('an upload in parts whose last request has an unknown outcome', {
  timeoutMs: 60_000,
})
uploads.before(async (context) => {
  context.server = await startServer()
})
uploads.after(({ server }) => server.stop())

const content = new Uint8Array(17 << 20)
const replyOf = (status: number, code: string) =>
  Response.json({ error: { code, message: code } }, { status, headers: { 'retry-after': '0' } })

for (const [code, reply] of [
  [
    'unreachable',
    () => {
      throw new TypeError('fetch failed')
    },
  ],
  ['conflict', () => replyOf(409, 'conflict')],
  ['unavailable', () => replyOf(503, 'unavailable')],
] as const)
  uploads(`can still be completed after ${code}`, async ({ server: { url, api } }) => {
    const path = `${code}.bin`
    let upload_id = ''
    const client = createClient({
      url,
      token: api.key,
      retries: 0,
      fetch: async (target, init) => {
        const [, id] = /uploads\/([^/]+)\/complete$/.exec(String(target)) ?? []
        if (id === undefined) return fetch(target, init)
        upload_id = id
        return reply()
      },
    })
    const failure: unknown = await client.files.put(path, content).catch((error: unknown) => error)
    assert.instance(failure, ServiceError)
    assert.is((failure as ServiceError).code, code)
    const later = createClient({ url, token: api.key })
    await later.request('POST /v1/files/uploads/{upload_id}/complete', { path: { upload_id } })
    assert.is((await later.files.stat(path)).size, content.length)
  })

uploads('is deleted after a refusal', async ({ server: { url, api } }) => {
  const deleted: string[] = []
  const client = createClient({
    url,
    token: api.key,
    fetch: async (target, init) => {
      if (init?.method === 'DELETE') deleted.push(String(target))
      return String(target).endsWith('/complete') ? replyOf(403, 'quota_exceeded') : fetch(target, init)
    },
  })
  const failure: unknown = await client.files.put('refused.bin', content).catch((error: unknown) => error)
  assert.is((failure as ServiceError).code, 'quota_exceeded')
  assert.is(deleted.length, 1)
})

uploads.run()
