import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { deploy, type Project, type Webhook } from '../support/build.ts'
import { spawnServer, startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

/** Returns hashes of the secrets that it received, because its result is stored in plain text. */
const HOOK = {
  'hook.js': `import { createHash } from 'node:crypto'
    import { fn } from 'svc'
    const hash = (text) => createHash('sha256').update(text).digest('hex')
    export const hook = fn(
      { webhook: { service: 'bank', path: '/paid' }, 'secret-headers': ['X-Signature'] },
      ({ headers, ...request }) => [headers.authorization, headers.cookie, headers['x-signature'], request['original-url']].map(hash),
    )`,
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Every file of a data directory but the one that is there to hold secrets. */
const filesOf = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, name))
    .filter((file) => statSync(file).isFile() && !file.endsWith('secrets.json'))

const secrets = suite('secrets (I6)')

secrets('of a webhook reach its handler and are nowhere in plain text', async () => {
  const dataDir = tempDir()
  const server = await startServer({ dataDir })
  await deploy(server.api, 'bank', HOOK)
  const [webhook] = (await server.api.page<Webhook>('/projects/bank/webhooks')).data
  const url = `${webhook?.url}?page=1`
  const headers = {
    Authorization: 'Bearer planted-bearer',
    cookie: 'planted-cookie',
    'x-signature': 'planted-signature',
  }
  const { status, json } = await server.api.send('POST', url, { headers, body: { paid: true } })
  assert.is(status, 200)
  assert.equal(json, [...Object.values(headers), url].map(hash))
  await server.stop()

  const planted = [
    'planted-bearer',
    'planted-cookie',
    'planted-signature',
    webhook?.url.split('/').at(-1) ?? '',
    server.api.key.slice(-49),
  ]
  for (const file of filesOf(dataDir)) {
    const bytes = readFileSync(file)
    for (const secret of planted) assert.not(bytes.includes(secret), `${file} holds ${secret}`)
  }
  for (const secret of planted) assert.not(server.output.join('').includes(secret), `the log holds ${secret}`)
})

secrets('in context variables reach functions, over restarts, and are nowhere in plain text', async () => {
  const dataDir = tempDir()
  const planted = [
    'planted-first',
    'planted-second',
    'planted-deleted',
    'planted-refused',
    'planted-restarted',
  ]
  const [first, second, deleted, refused, restarted] = planted as [string, string, string, string, string]
  const code = `import { createHash } from 'node:crypto'
    import { context } from 'svc'
    export const told = async () => createHash('sha256').update(await context('KEY')).digest('hex')`
  let server = await startServer({ dataDir })
  const printed: string[] = []
  const told = async (): Promise<unknown> =>
    (await server.api.post<{ result: unknown }>('/projects/bank/eval', { code: `await run('f/told')` }))
      .result
  const body = (value: unknown) => ({ body: { value, description: 'A key' } })
  await deploy(server.api, 'bank', { 'f.js': code })
  await server.api.post('/projects/bank/context', { key: 'KEY', value: first })
  assert.is(await told(), hash(first))
  await server.api.send('PUT', '/projects/bank/context/KEY', body(second))
  assert.is(await told(), hash(second))
  await server.api.post('/projects/bank/context', { key: 'GONE', value: deleted })
  await server.api.remove('/projects/bank/context/GONE')
  for (const value of [{ refused }, refused.repeat(4000)])
    assert.is((await server.api.send('PUT', '/projects/bank/context/KEY', body(value))).status, 400)
  await server.stop()
  printed.push(...server.output)

  server = await startServer({ dataDir })
  assert.is(await told(), hash(second))
  await server.api.send('PUT', '/projects/bank/context/KEY', body(restarted))
  assert.is(await told(), hash(restarted))
  await server.stop()
  printed.push(...server.output)

  for (const file of filesOf(dataDir)) {
    const bytes = readFileSync(file)
    for (const secret of planted) {
      for (const form of [
        secret,
        Buffer.from(secret).toString('base64'),
        Buffer.from(secret).toString('hex'),
      ])
        assert.not(bytes.includes(form), `${file} holds ${secret}`)
    }
  }
  for (const secret of planted) assert.not(printed.join('').includes(secret), `the log holds ${secret}`)
})

/** Whatever engines the other tests are run on: here the files are looked at. */
const EMBEDDED = {
  SVC_EVENT_STORE: 'embedded:',
  SVC_READ_MODELS: 'embedded:',
  SVC_BLOBS: 'embedded:',
  SVC_REDIS: '',
}

secrets('of a deleted project have no key any more', async () => {
  const { api, dataDir, stop } = await spawnServer({ env: EMBEDDED })
  const ids: string[] = []
  for (const name of ['doomed', 'kept']) {
    ids.push((await api.post<Project>('/projects', { name })).project_id)
    await api.post(`/projects/${name}/context`, { key: 'KEY', value: 'x' })
  }
  const keys = () => ids.map((id) => filesOf(dataDir).filter((file) => file.includes(id)).length)
  assert.equal(keys(), [1, 1])
  await api.remove('/projects/doomed')
  assert.equal(keys(), [0, 1])
  await stop()
})

secrets.run()
