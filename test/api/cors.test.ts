import * as assert from 'uvu/assert'
import { deploy, type Webhook } from '../support/build.ts'
import type { Answer } from '../support/http.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { as, newServiceKey, newSession } from './issuing.ts'

const PAGE = 'https://app.example'
const OTHER = 'https://evil.test'

const server = await startServer({ env: { SVC_CORS_ORIGINS: `${PAGE},loopback` } })
const closed = await startServer({ env: {} })
const { api } = server
const session = as(
  api,
  await newSession(api, {
    'run:*': ['read'],
    'project:*': ['read'],
    'stream:*': ['read'],
    'event:*': ['create'],
  }),
)

const preflight = (url: string, origin: string, method = 'GET'): Promise<Answer> =>
  api.send('OPTIONS', url, {
    headers: {
      Authorization: '', // a browser sends no credential with it
      Origin: origin,
      'Access-Control-Request-Method': method,
      'Access-Control-Request-Headers': 'authorization,content-type',
    },
  })

const accessHeaders = ({ headers }: Pick<Answer, 'headers'>): string[] =>
  [...headers.keys()].filter((name) => name.startsWith('access-control-'))

const listOf = ({ headers }: Answer, name: string): string[] => (headers.get(name) ?? '').split(', ')

const cors = suite('the API in a browser (CORS)', { timeoutMs: 60_000 })

cors('answers a preflight of an allowed origin with 204, before any credential is checked', async () => {
  for (const path of ['/events', '/streams/subscribe-with-event', '/files/upload/a/b']) {
    const reply = await preflight(path, PAGE, 'POST')
    assert.is(reply.status, 204)
    assert.is(reply.text, '')
    assert.is(reply.headers.get('access-control-allow-origin'), PAGE)
    assert.is(reply.headers.get('vary'), 'Origin')
    assert.is(reply.headers.get('access-control-max-age'), '7200')
    assert.is(reply.headers.get('access-control-allow-credentials'), null)
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
      assert.ok(listOf(reply, 'access-control-allow-methods').includes(method), method)
    for (const name of ['Authorization', 'Content-Type', 'Idempotency-Key', 'Last-Event-ID'])
      assert.ok(listOf(reply, 'access-control-allow-headers').includes(name), name)
  }
})

cors('lets the page read the reply and its headers', async () => {
  const reply = await session.send('GET', '/runs', { headers: { Origin: PAGE } })
  assert.is(reply.status, 200)
  assert.is(reply.headers.get('access-control-allow-origin'), PAGE)
  for (const name of ['X-Request-Id', 'RateLimit', 'RateLimit-Policy', 'Retry-After', 'Stream-Position'])
    assert.ok(listOf(reply, 'access-control-expose-headers').includes(name), name)
})

cors('lets the page read errors', async () => {
  for (const [method, path, status] of [
    ['GET', '/runs?limit=x', 400],
    ['GET', '/projects/none', 404],
    ['GET', '/nowhere', 404],
    ['DELETE', '/events', 405],
    ['GET', '/env', 403],
  ] as const) {
    const reply = await session.send(method, path, { headers: { Origin: PAGE } })
    assert.is(reply.status, status, path)
    assert.is(reply.headers.get('access-control-allow-origin'), PAGE, path)
    assert.is(reply.headers.get('vary'), 'Origin', path)
  }
  const unknown = await api.send('GET', '/runs', { headers: { Origin: PAGE, Authorization: 'Bearer x' } })
  assert.is(unknown.status, 401)
  assert.is(unknown.headers.get('access-control-allow-origin'), PAGE)
})

cors('lets the page read a stream', async () => {
  const { event_id, stream_id } = await session.post<{ event_id: string; stream_id: string }>('/events', {
    event_type: 'a',
    event_data: null,
  })
  assert.ok(event_id)
  const url = `${api.url}/v1/streams/${stream_id}/subscribe`
  const reply = await fetch(url, { headers: { Origin: PAGE, Authorization: `Bearer ${session.key}` } })
  assert.is(reply.headers.get('access-control-allow-origin'), PAGE)
  assert.is(reply.headers.get('vary'), 'Origin')
  assert.match(reply.headers.get('access-control-expose-headers') ?? '', 'Stream-Position')
  await reply.body?.cancel()
})

cors('names no other origin, in a preflight or a reply', async () => {
  for (const origin of [OTHER, 'null', `${PAGE}.evil.test`, 'http://localhost:99999999999999999999x']) {
    const asked = await preflight('/events', origin, 'POST')
    assert.is(asked.status, 200)
    assert.equal(accessHeaders(asked), [])
    const reply = await session.send('GET', '/runs', { headers: { Origin: origin } })
    assert.equal(accessHeaders(reply), [])
    assert.is(reply.headers.get('vary'), 'Origin') // a cache must not send this reply to an allowed page
  }
})

cors('is closed to every page without the setting', async () => {
  for (const origin of [PAGE, 'http://localhost:5173']) {
    const reply = await closed.api.send('GET', '/runs', { headers: { Origin: origin } })
    assert.is(reply.status, 200)
    assert.equal(accessHeaders(reply), [])
    assert.is(reply.headers.get('vary'), null)
    const asked = await closed.api.send('OPTIONS', '/runs', {
      headers: { Origin: origin, 'Access-Control-Request-Method': 'GET' },
    })
    assert.is(asked.status, 200)
    assert.equal(accessHeaders(asked), [])
  }
})

cors('never opens the API of the operator, the metrics and the pages of the service', async () => {
  for (const path of ['/operator/orgs', '/metrics', '/healthz', '/openapi.json', '/v1', '/%76%31/runs']) {
    const reply = await api.send('GET', server.url + path, { headers: { Origin: PAGE } })
    assert.equal(accessHeaders(reply), [], path)
    assert.equal(accessHeaders(await preflight(server.url + path, PAGE)), [], path)
  }
})

cors('leaves the headers of a webhook to its function', async () => {
  await deploy(api, 'shop', {
    'h.js': `import { fn } from 'svc'
      const reply = (headers) => () => ({ status: 200, headers, body: 'ok' })
      export const own = fn({ webhook: { service: 's', path: '/own' } }, reply({ 'access-control-allow-origin': '*' }))
      export const none = fn({ webhook: { service: 's', path: '/none' } }, reply({}))`,
  })
  const hooks = await api.get<Webhook[]>('/projects/shop/webhooks')
  const found: Record<string, string | null> = {}
  for (const { path, url } of hooks) {
    const reply = await api.send('POST', url, { headers: { Origin: PAGE, Authorization: '' } })
    assert.is(reply.status, 200)
    found[path] = reply.headers.get('access-control-allow-origin')
  }
  assert.equal(found, { '/own': '*', '/none': null })
})

cors('refuses a key from a page: the page needs a session', async () => {
  const service = as(api, await newServiceKey(api, { 'run:*': ['read'] }, { name: 'a' }))
  for (const [key, what] of [
    [api, 'an API key'],
    [service, 'a service key'],
  ] as const)
    for (const origin of [PAGE, 'http://localhost:5173']) {
      const { status, json, headers } = await key.send('GET', '/runs', { headers: { Origin: origin } })
      const { error } = json as { error: { code: string; message: string } }
      assert.equal([status, error.code], [403, 'forbidden'])
      assert.match(error.message, `expected a session from a browser, got ${what}`)
      assert.match(error.message, 'POST /v1/sessions')
      assert.is(headers.get('access-control-allow-origin'), origin)
    }
})

cors('accepts a key from a page of the service itself, and from every program', async () => {
  const statusWith = async (headers: Record<string, string>) =>
    (await api.send('GET', '/runs', { headers })).status
  assert.is(await statusWith({}), 200)
  assert.is(await statusWith({ Origin: server.url }), 200)
  assert.is(await statusWith({ Origin: OTHER }), 200)
  assert.is(await statusWith({ Origin: PAGE, 'Sec-Fetch-Site': 'same-origin' }), 200)
})

cors.after(() => Promise.all([server.stop(), closed.stop()]))

cors.run()
