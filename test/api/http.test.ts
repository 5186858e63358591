import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { isId, newId } from '../../src/ids.ts'
import { newApiToken } from '../../src/secrets.ts'
import { publish } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startWithOther()
const { api, other } = server

const envelope = suite('every reply')

envelope('carries the request’s id in header and body, a new one each time', async () => {
  const ids: unknown[] = []
  for (const path of ['/env', '/projects', '/none', '/events?limit=0']) {
    const { headers, json } = await api.send('GET', path)
    const { meta, error } = json as { meta?: { request_id: string }; error?: { request_id: string } }
    const id = headers.get('x-request-id')
    assert.is((meta ?? error)?.request_id, id)
    assert.ok(isId(id ?? ''))
    ids.push(id)
  }
  assert.is(new Set(ids).size, ids.length)
})

envelope('of one thing is {data, meta}, of many {data, pagination, meta}', async () => {
  const one = (await api.send('GET', '/env')).json as { meta: { timestamp: string } }
  assert.equal(Object.keys(one), ['data', 'meta'])
  assert.equal(Object.keys(one.meta).sort(), ['request_id', 'timestamp'])
  assert.is(new Date(one.meta.timestamp).toISOString(), one.meta.timestamp)
  const many = (await api.send('GET', '/events')).json as { pagination: object }
  assert.equal(Object.keys(many), ['data', 'pagination', 'meta'])
  assert.equal(Object.keys(many.pagination), ['total', 'limit', 'offset', 'has_more'])
})

envelope('of an error is {error: {code, message, request_id}}', async () => {
  const { json, headers } = await api.send('GET', '/projects/none')
  assert.equal(Object.keys(json as object), ['error'])
  assert.equal(Object.keys((json as { error: object }).error).sort(), ['code', 'message', 'request_id'])
  assert.match(headers.get('content-type') ?? '', 'application/json')
})

for (const path of ['', '/v1', '/v2/projects', '/v1/none', '/v1/projects/a/b/c', '//v1/env', '/%', '/v1/projects/%ff', '/v1/runs/%00']) {
  envelope(`is 404 where there is nothing: ${path}`, async () => {
    const { status, code } = await api.refused('GET', `${server.url}${path}`)
    assert.equal([status, code], [404, 'not_found'])
  })
}

for (const [method, path] of [['DELETE', '/events'], ['PUT', '/projects'], ['POST', '/env'], ['PATCH', '/runs/stats'], ['OPTIONS', '/nope']] as const) {
  envelope(`is an error for ${method} ${path}`, async () => {
    const { status, code } = await api.refused(method, path)
    assert.equal([status, code], path === '/nope' ? [404, 'not_found'] : [405, 'method_not_allowed'])
  })
}

envelope('to what is not HTTP is an error as well', async () => {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.end('nonsense\r\n\r\n')
  const text = (await buffer(socket)).toString()
  assert.match(text, /^HTTP\/1\.1 400 /)
  assert.is((JSON.parse(text.slice(text.indexOf('{'))) as { error: { code: string } }).error.code, 'bad_request')
})

envelope('has no body for HEAD', async () => {
  const { status, text } = await api.send('HEAD', '/env')
  assert.equal([status, text], [200, ''])
})

envelope('is open for status, health and readiness', async () => {
  const open = async (path: string) => (await fetch(`${server.url}${path}`)).json()
  const status = (await open('/status')) as Record<string, string>
  assert.equal(Object.keys(status).sort(), ['git_sha', 'service', 'start_time', 'status', 'version'])
  assert.equal([status['status'], status['service']], ['ok', 'svc'])
  assert.equal([await open('/healthz'), await open('/readyz')], [{ status: 'ok' }, { status: 'ready' }])
})

envelope.run()

const auth = suite('a credential')

const [, id = '', secret = ''] = /^svc_([^_]+)_(.+)$/.exec(api.key) ?? []
const bad: Record<string, string | undefined> = {
  none: undefined,
  empty: '',
  'another scheme': `Basic ${api.key}`,
  'no scheme': api.key,
  'no token': 'Bearer ',
  garbage: 'Bearer x',
  'a wrong secret': `Bearer svc_${id}_${secret.slice(0, -1)}${secret.endsWith('a') ? 'b' : 'a'}`,
  'a longer secret': `Bearer ${api.key}a`,
  'a shorter secret': `Bearer ${api.key.slice(0, -1)}`,
  'another key’s secret': `Bearer svc_${id}_${other.key.split('_').at(-1)}`,
  'an id that is unknown': `Bearer ${newApiToken(newId())}`,
  'an id in capitals': `Bearer svc_${id.toUpperCase()}_${secret}`,
  'no brand': `Bearer ${id}_${secret}`,
  'two tokens': `Bearer ${api.key} ${api.key}`,
  'a very long one': `Bearer svc_${id}_${'a'.repeat(8000)}`,
}
for (const [name, authorization] of Object.entries(bad)) {
  auth(`is refused, always the same: ${name}`, async () => {
    for (const [method, path] of [['GET', '/v1/projects'], ['POST', '/v1/events'], ['GET', `/v1/runs/${newId()}`], ['GET', '/v1/env/subscribe']] as const) {
      const response = await fetch(`${server.url}${path}`, { method, headers: authorization === undefined ? {} : { authorization } })
      const { request_id, ...error } = ((await response.json()) as { error: Record<string, string> }).error
      assert.equal([response.status, error], [401, { code: 'unauthorized', message: 'Expected a valid credential in `Authorization: Bearer <token>`' }])
      assert.is(response.headers.get('www-authenticate'), 'Bearer')
      assert.ok(request_id)
    }
  })
}

auth('may be sent with the scheme in any case', async () => {
  assert.is((await api.send('GET', '/env', { headers: { Authorization: `bearer ${api.key}` } })).status, 200)
})

auth('belongs to one environment', async () => {
  const [ours, theirs] = [await api.get<Record<string, unknown>>('/env'), await other.get<Record<string, unknown>>('/env')]
  assert.equal(Object.keys(ours), ['env_id', 'org_id', 'name', 'active'])
  assert.equal([ours['name'], ours['active'], theirs['name']], ['dev', true, 'dev'])
  assert.is.not(ours['env_id'], theirs['env_id'])
})

auth('stands in no log line', () => assert.equal(server.log.filter((line) => line.includes(secret)), []))

auth.run()

const pages = suite('a list')

pages('comes in pages that tell of the rest', async () => {
  const all = []
  for (let n = 0; n < 5; n++) all.unshift((await publish(api, 'paged', n)).event_id)
  const page = async (query: string) => {
    const { data, pagination } = await api.page<{ event_id: string }>(`/events?event_type=paged&${query}`)
    return [data.map(({ event_id }) => all.indexOf(event_id)), pagination]
  }
  assert.equal(await page(''), [[0, 1, 2, 3, 4], { total: 5, limit: 20, offset: 0, has_more: false }])
  assert.equal(await page('limit=2'), [[0, 1], { total: 5, limit: 2, offset: 0, has_more: true }])
  assert.equal(await page('limit=2&offset=2'), [[2, 3], { total: 5, limit: 2, offset: 2, has_more: true }])
  assert.equal(await page('limit=2&offset=4'), [[4], { total: 5, limit: 2, offset: 4, has_more: false }])
  assert.equal(await page('limit=100&offset=9'), [[], { total: 5, limit: 100, offset: 9, has_more: false }])
})

const LISTS = ['/projects', '/builds', '/events', '/runs', '/projects/p/builds', '/projects/p/event-handlers', '/projects/p/schedules', '/projects/p/webhooks']
for (const path of LISTS) {
  pages(`keeps its bounds: ${path}`, async () => {
    await api.send('POST', '/projects', { body: { name: 'p' } })
    for (const query of ['limit=0', 'limit=101', 'limit=-1', 'limit=abc', 'limit=1.5', 'limit=', 'limit=1&limit=2', 'limit=1e1', 'offset=-1', 'offset=x', 'offset=99999999999999999999']) {
      const { status, code, message } = await api.refused('GET', `${path}?${query}`)
      assert.equal([status, code], [400, 'bad_request'], query)
      assert.ok(message.startsWith(`${query.split('=')[0]}: `), `${query}: ${message}`)
    }
    for (const query of ['limit=1', 'limit=100', 'offset=0', 'offset=1000000']) {
      assert.is((await api.send('GET', `${path}?${query}`)).status, 200, query)
    }
  })

  pages(`names a parameter it does not know: ${path}`, async () => {
    for (const name of ['colour', 'Limit', '__proto__', 'constructor']) {
      const { status, message } = await api.refused('GET', `${path}?${name}=1`)
      assert.is(status, 400)
      assert.ok(message.startsWith(`${name}: `), message)
    }
  })
}

pages.after(() => server.stop())
pages.run()
