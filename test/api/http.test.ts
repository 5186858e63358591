import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { isId } from '../../src/ids.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startServer()
const { api } = server

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

for (const path of [
  '',
  '/v1',
  '/v2/projects',
  '/v1/none',
  '/v1/projects/a/b/c',
  '//v1/env',
  '/%',
  '/v1/projects/%ff',
  '/v1/runs/%00',
]) {
  envelope(`is 404 on an unknown path: ${path}`, async () => {
    const { status, code } = await api.refused('GET', `${server.url}${path}`)
    assert.equal([status, code], [404, 'not_found'])
  })
}

for (const [method, path] of [
  ['DELETE', '/events'],
  ['PUT', '/projects'],
  ['POST', '/env'],
  ['PATCH', '/runs/stats'],
  ['OPTIONS', '/nope'],
] as const) {
  envelope(`is an error for ${method} ${path}`, async () => {
    const { status, code } = await api.refused(method, path)
    assert.equal([status, code], path === '/nope' ? [404, 'not_found'] : [405, 'method_not_allowed'])
  })
}

envelope('of an unknown method names the existing methods', async () => {
  for (const method of ['PATCH', 'TRACE', 'PROPFIND']) {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.end(`${method} /v1/projects HTTP/1.1\r\nHost: svc\r\nConnection: close\r\n\r\n`)
    const reply = (await buffer(socket)).toString()
    assert.match(reply, /^HTTP\/1\.1 405 /)
    assert.equal(/^Allow: (.*)$/im.exec(reply)?.[1]?.trim().split(', ').sort(), ['GET', 'HEAD', 'POST'])
    assert.match(reply, '"method_not_allowed"')
  }
})

envelope('of HEAD on a live stream names the other method', async () => {
  for (const path of ['/env/subscribe', '/streams/none/subscribe']) {
    const { status, headers, text } = await api.send('HEAD', path)
    assert.equal([status, headers.get('allow'), text], [405, 'GET', ''])
  }
})

envelope('of an unknown method on an unknown path is 404', async () => {
  for (const path of ['/', '/nope']) {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.end(`TRACE ${path} HTTP/1.1\r\nHost: svc\r\nConnection: close\r\n\r\n`)
    assert.match((await buffer(socket)).toString(), /^HTTP\/1\.1 404 /)
  }
})

for (const [what, text, status, code] of [
  ['what is not HTTP', 'nonsense\r\n\r\n', 400, 'bad_request'],
  [
    'headers that are too long',
    `GET /v1/env HTTP/1.1\r\nX-Long: ${'x'.repeat(17 << 10)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  ['too many headers', `GET /v1/env HTTP/1.1\r\n${'X:\r\n'.repeat(1001)}\r\n`, 431, 'headers_too_large'],
] as const) {
  envelope(`is an error for ${what} too`, async () => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.end(text)
    const reply = (await buffer(socket)).toString()
    assert.match(reply, new RegExp(`^HTTP/1\\.1 ${status} `))
    const { error } = JSON.parse(reply.slice(reply.indexOf('{'))) as {
      error: { code: string; message: string; request_id: string }
    }
    assert.is(error.code, code)
    if (status === 431)
      assert.is(error.message, 'headers: expected at most 16384 bytes and 1000 lines in all')
    assert.ok(isId(error.request_id))
    assert.match(reply, `\r\nX-Request-Id: ${error.request_id}\r\n`)
  })
}

/** Sends a request whole before it looks at the reply, which it gives as text. */
const sentBlindly = async (head: string, body: Buffer): Promise<string> => {
  const socket = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true })
  socket.pause()
  socket.write(`${head}\r\nHost: svc\r\nContent-Length: ${body.length}\r\n\r\n`)
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.write(body, (error) => (error ? reject(error) : resolve()))
  })
  return (await buffer(socket)).toString()
}

const LARGE = Buffer.alloc(8 << 20, 'x')

for (const [head, status] of [
  [`POST /v1/events HTTP/1.1\r\nAuthorization: Bearer ${api.key}`, 413],
  ['POST /v1/events HTTP/1.1', 401],
  ['DELETE /v1/none HTTP/1.1\r\nConnection: close', 404],
] as const)
  envelope(`reaches a client that sends far more than is accepted (${status})`, async () => {
    const text = await sentBlindly(head, LARGE)
    assert.match(text, `HTTP/1.1 ${status} `)
    assert.is(text.match(/HTTP\/1\.1/g)?.length, 1)
    assert.ok(isId(JSON.parse(text.slice(text.indexOf('{'))).error.request_id))
  })

envelope('with an error keeps the connection open for a client that sent everything', async () => {
  for (const path of ['/none', '/projects/none'])
    assert.is((await api.send('GET', path)).headers.get('connection'), 'keep-alive')
  const { status, headers } = await api.send('POST', '/events', { body: '{' })
  assert.equal([status, headers.get('connection')], [400, 'keep-alive'])
})

envelope('has no body for HEAD', async () => {
  const { status, text } = await api.send('HEAD', '/env')
  assert.equal([status, text], [200, ''])
})

envelope('is kept by no cache, has no guessed type and sends no URL to other sites', async () => {
  const leaving = new AbortController()
  const { key } = api
  const replies = [
    await api.send('GET', '/env'),
    await api.send('POST', '/sessions', { body: { permissions: {} } }),
    await api.send('GET', '/none'),
    await api.send('POST', '/events', { body: '{' }),
    await api.send('OPTIONS', '/env'),
    await api.send('DELETE', '/env'),
    await api.send('GET', `${server.url}/status`),
    await api.send('GET', `${server.url}/operator/orgs`),
  ]
  for (const { headers } of replies)
    assert.equal(
      ['cache-control', 'x-content-type-options', 'referrer-policy'].map((name) => headers.get(name)),
      ['no-store', 'nosniff', 'no-referrer'],
    )
  const stream = await fetch(`${server.url}/v1/env/subscribe`, {
    headers: { Authorization: `Bearer ${key}` },
    signal: leaving.signal,
  })
  assert.is(stream.headers.get('cache-control'), 'no-store, no-transform')
  assert.is(stream.headers.get('x-content-type-options'), 'nosniff')
  leaving.abort()
})

envelope('of the docs page shares no window with other origins', async () => {
  const { headers } = await api.send('GET', `${server.url}/docs`)
  assert.is(headers.get('cross-origin-opener-policy'), 'same-origin')
  assert.match(headers.get('cache-control') ?? '', /^public/)
})

envelope('is open for status, health and readiness', async () => {
  const open = async (path: string) => (await fetch(`${server.url}${path}`)).json()
  const status = (await open('/status')) as Record<string, string>
  assert.equal(Object.keys(status).sort(), ['git_sha', 'service', 'start_time', 'status', 'version'])
  assert.equal([status['status'], status['service']], ['ok', 'svc'])
  assert.equal(await open('/healthz'), { status: 'ok' })
  interface Ready {
    sandbox: { tier: string; reason: string }
    /** Missing on nodes of a cluster that are no worker. */
    oldest_untaken_event_ms?: number
  }
  const { sandbox, oldest_untaken_event_ms = 0, ...ready } = (await open('/readyz')) as Ready
  assert.equal([ready, oldest_untaken_event_ms], [{ status: 'ready' }, 0])
  assert.ok(['process', 'namespace'].includes(sandbox.tier) && sandbox.reason)
})

envelope.after(() => server.stop())
envelope.run()
