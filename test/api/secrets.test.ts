import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { newApiToken } from '../../src/access/tokens.ts'
import { newId } from '../../src/ids.ts'
import { raw } from '../attacks/raw.ts'
import { deploy, handle, type Project, type Webhook } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { EMBEDDED } from '../support/installation.ts'
import { spawnServer, startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

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

const secrets = suite('secrets (I6)', { timeoutMs: 120_000 })

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

/** Prints, throws and exits with the value of a variable. */
const CARELESS = {
  'careless.js': `import { context } from 'svc'
    export const throws = async () => {
      const value = await context('KEY')
      console.error('connecting with ' + value)
      throw new Error('refused: ' + value, { cause: new Error(value) })
    }
    export const exits = async () => {
      process.stderr.write(await context('KEY'))
      process.exit(3)
    }`,
}

const OPERATOR_READS = [
  'status',
  'nodes',
  'checks',
  'orgs',
  'orgs/local/usage',
  'orgs/local/envs',
  'projections',
  'skipped-facts',
  'abandoned-events',
  'audit?limit=100',
].map((path) => `/operator/${path}`)

secrets('of every kind are in no line of the log and no reply, whatever fails', async () => {
  const planted = (kind: string): string => `planted${kind}${newId().replaceAll('-', '')}`
  const settings = {
    SVC_API_KEY: newApiToken(newId()),
    SVC_OPERATOR_TOKEN: planted('operator'),
    SVC_MASTER_KEY: randomBytes(32).toString('base64'),
  }
  const engines = { redis: planted('redis'), collector: planted('collector') }
  const sent = {
    bearer: planted('bearer'),
    cookie: planted('cookie'),
    session: planted('session'),
    token: planted('token'),
    body: planted('body'),
    variable: planted('variable'),
    raw: planted('raw'),
  }
  const { api, url, output, end } = await spawnServer({
    env: {
      ...EMBEDDED,
      ...settings,
      SVC_LOG_LEVEL: 'debug',
      SVC_REDIS: `redis://user:${engines.redis}@127.0.0.1:1`,
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=${engines.collector}`,
    },
  })
  const replies: string[] = []
  const send = async (...asked: Parameters<typeof api.send>): Promise<void> =>
    void replies.push((await api.send(...asked)).text)
  await deploy(api, 'bank', CARELESS)
  await api.post('/projects/bank/context', { key: 'KEY', value: sent.variable })
  for (const name of ['throws', 'exits'])
    await handle(api, 'svc:call', { fn: `careless/${name}`, project: 'bank', args: [] })
  const cookie = `svc_session=${sent.cookie}; __Host-svc_session=${sent.cookie}`
  const wrong = { authorization: `Bearer ${sent.bearer}`, cookie }
  for (const path of ['/env', '/nothing', `${url}/operator/status`, `${url}/ui/`, `${url}/metrics`])
    await send('GET', path, { headers: wrong })
  await send('GET', `/env/subscribe?session=${sent.session}`, { headers: { authorization: '' } })
  for (const name of ['session', 'token', 'ticket']) await send('GET', `/env?${name}=${sent.session}`)
  await send('POST', `${url}/webhook/local/dev/bank/paid/${sent.token}`, { body: {} })
  for (const body of [
    `{"key":"A","value":"${sent.body}`,
    { key: 'not a key', value: sent.body },
    { key: 'A', value: [sent.body] },
    { key: 'A', value: sent.body, more: 1 },
  ])
    await send('POST', '/projects/bank/context', { body })
  await raw(url, `GET /v1/env HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${sent.raw}\r\nbad header\r\n\r\n`)
  for (const path of ['/runs?limit=100', '/events?limit=100', `${url}/readyz`, `${url}/metrics`])
    await send('GET', path)
  const operator = openApi(url, settings.SVC_OPERATOR_TOKEN)
  for (const path of OPERATOR_READS) {
    const { status, text } = await operator.send('GET', `${url}${path}`)
    assert.is(status, 200, path)
    replies.push(text)
  }
  await until(() => /redis/i.test(output.join('')) && /collector of traces/.test(output.join('')))
  await end('SIGTERM')

  const failed = { esdb: planted('esdb'), mongodb: planted('mongodb'), s3: planted('s3') }
  const started = await Promise.allSettled(
    [
      { SVC_EVENT_STORE: `esdb://admin:${failed.esdb}@127.0.0.1:1?tls=false` },
      { SVC_READ_MODELS: `mongodb://admin:${failed.mongodb}@127.0.0.1:1/svc?serverSelectionTimeoutMS=100` },
      { SVC_BLOBS: `s3://key:${failed.s3}@127.0.0.1:2/bucket?region=eu&tls=false` },
    ].map((env) =>
      spawnServer({ env: { ...EMBEDDED, ...settings, SVC_LOG_LEVEL: 'debug', ...env }, startMs: 5000 }),
    ),
  )
  const printed = [...output]
  for (const one of started)
    if (one.status === 'rejected') printed.push(String(one.reason))
    else {
      await one.value.end('SIGKILL')
      printed.push(...one.value.output)
    }

  const [, , keySecret = ''] = settings.SVC_API_KEY.split('_')
  const all = { ...settings, SVC_API_KEY: keySecret, ...engines, ...sent, ...failed }
  for (const [kind, secret] of Object.entries(all)) {
    const line = printed
      .join('')
      .split('\n')
      .find((text) => text.includes(secret))
    assert.is(line, undefined, `${kind} is in the log: ${line}`)
    const reply = replies.find((text) => text.includes(secret))
    assert.is(reply, undefined, `${kind} is in a reply: ${reply}`)
  }
})

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
