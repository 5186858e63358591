import * as assert from 'uvu/assert'
import { deploy, type Run, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { callHook, deployHooks, HOOKS, hookUrls } from './hooks.ts'

const server = await startServer({ env: { SVC_WEBHOOK_TIMEOUT_MS: '5000' } })
const { api } = server
const known = await deployHooks(api)
const urlOf = (name: string) => known.get(`POST s.1/${name}`) ?? ''

const answering = suite('a webhook reply')

const reply = (value: unknown) => callHook(urlOf('reply'), { body: JSON.stringify(value) })

answering('has the status, headers and body that the function returned', async () => {
  const { status, headers, json } = await reply({
    status: 202,
    headers: { 'X-Mine': 'yes', Link: ['<a>', '<b>'] },
    body: { ok: true },
  })
  assert.equal([status, headers.get('x-mine'), json], [202, 'yes', { ok: true }])
  assert.is(headers.get('link'), '<a>, <b>')
  assert.match(headers.get('content-type') ?? '', 'application/json')
})

answering('may have another content type, or no body', async () => {
  const { headers, text } = await fetch(urlOf('reply'), {
    method: 'POST',
    body: JSON.stringify({ status: 200, headers: { 'Content-Type': 'text/html' }, body: 'text' }),
  }).then(async (response) => ({ headers: response.headers, text: await response.text() }))
  assert.equal([headers.get('content-type'), text], ['text/html', 'text'])
  assert.equal([(await reply({ status: 204 })).status, (await reply({ status: 204 })).text], [204, ''])
  assert.equal([(await reply({ status: 404 })).status, (await reply({ status: 404 })).text], [404, ''])
})

for (const value of [
  null,
  0,
  false,
  '',
  'text',
  [1],
  { a: 1 },
  { status: 'ok' },
  { status: 7, order: 1 },
  { status: 'shipped', order: 1 },
  { headers: {}, body: 1 },
]) {
  answering(`is 200 with any other value as JSON: ${JSON.stringify(value)}`, async () => {
    const { status, json, headers } = await reply(value)
    assert.equal([status, json], [200, value])
    assert.match(headers.get('content-type') ?? '', 'application/json')
  })
}

answering('is null when the function returns nothing', async () =>
  assert.is((await callHook(urlOf('nothing'))).json, null),
)

answering('cannot break the protocol by its headers', async () => {
  for (const headers of [{ 'X-A': 'a\r\nSet-Cookie: b' }, { 'bad name': 'x' }, { 'X-Ü': '1' }]) {
    assert.is((await reply({ status: 200, headers })).status, 500)
  }
  const { status, headers, json } = await reply({
    status: 200,
    headers: { 'Content-Length': '1', 'Transfer-Encoding': 'x', 'X-Request-Id': 'mine' },
    body: 'whole',
  })
  assert.equal([status, json], [200, 'whole'])
  assert.is.not(headers.get('x-request-id'), 'mine')
})

/** Headers that a function may not set on the origin that all environments share. */
const TAKEOVER = {
  'Set-Cookie': ['session=1; Path=/', 'b=2'],
  'Strict-Transport-Security': 'max-age=31536000; includeSubDomains',
  'Clear-Site-Data': '"*"',
  'Alt-Svc': 'h3="evil.example:443"',
  'Service-Worker-Allowed': '/',
  'Public-Key-Pins': 'pin-sha256="x"; max-age=1',
  'Origin-Agent-Cluster': '?1',
  'Report-To': '{}',
  NEL: '{}',
  'WWW-Authenticate': 'Basic realm="svc"',
  'Use-As-Dictionary': 'match="/docs*"',
  'Accept-CH': 'Sec-CH-UA',
}
const PROXY_COMMANDS = {
  'X-Accel-Redirect': '/internal',
  'X-Accel-Expires': '99999',
  'X-ACCEL-Buffering': 'yes',
  'X-Sendfile': '/etc/passwd',
  'X-Sendfile-Type': 'X',
  'X-LiteSpeed-Location': '/etc/passwd',
  'X-Reproxy-URL': 'http://127.0.0.1',
  'Surrogate-Control': 'content="ESI/1.0"',
  'X-Envoy-Immediate-Health-Check-Fail': 'true',
  'L5d-Success-Class': '0.0',
}
const CONNECTION = {
  Connection: 'close, X-Hop',
  'X-Hop': 'a',
  'Keep-Alive': 'timeout=99999',
  'Proxy-Authenticate': 'Basic',
  'Proxy-Connection': 'close',
  TE: 'trailers',
  Trailer: 'X-Later',
  Upgrade: 'websocket',
  Date: 'Thu, 01 Jan 1970 00:00:00 GMT',
  Server: 'other',
  RateLimit: '"org";r=0;t=1',
  'Removed-Headers': 'x-a',
}

answering('leaves out headers about the connection, for the proxy and for the whole origin', async () => {
  const forbidden = { ...TAKEOVER, ...PROXY_COMMANDS, ...CONNECTION }
  const { status, headers, json } = await reply({ status: 401, headers: forbidden, body: 'whole' })
  assert.equal([status, json], [401, 'whole'])
  const passed = Object.keys(forbidden).filter(
    (name) => headers.get(name) === String(Reflect.get(forbidden, name)),
  )
  assert.equal(passed, [])
  for (const name of Object.keys({ ...TAKEOVER, ...PROXY_COMMANDS })) assert.is(headers.get(name), null, name)
  const names = Object.keys(TAKEOVER).map((name) => name.toLowerCase())
  assert.equal(headers.get('removed-headers')?.split(', '), names)
  assert.is((await reply({ status: 200, headers: CONNECTION })).headers.get('removed-headers'), null)
})

answering('is sandboxed, and its type is not guessed, whatever the function says', async () => {
  for (const headers of [
    {},
    { 'X-Content-Type-Options': 'none', 'Content-Security-Policy': "script-src 'unsafe-inline'" },
  ]) {
    const got = (await reply({ status: 200, headers, body: '' })).headers
    assert.is(got.get('x-content-type-options'), 'nosniff')
    assert.is(got.get('content-security-policy')?.split(', ')[0], 'sandbox')
  }
  assert.is((await reply('plain')).headers.get('content-security-policy'), 'sandbox')
})

answering('is not kept by caches unless the function says so', async () => {
  assert.is((await reply(1)).headers.get('cache-control'), 'no-store')
  const cached = await reply({ status: 200, headers: { 'Cache-Control': 'public, max-age=60' } })
  assert.is(cached.headers.get('cache-control'), 'public, max-age=60')
})

answering('may allow pages of other origins to read it', async () => {
  const { headers } = await reply({ status: 200, headers: { 'Access-Control-Allow-Origin': '*' } })
  assert.is(headers.get('access-control-allow-origin'), '*')
})

for (const [what, headers, message, more] of [
  ['a line break', { 'X-A': 'a\r\nSet-Cookie: b' }, /"x-a" has a character that no header can have/],
  ['text beyond Latin-1', { 'X-A': 'filename=报告.pdf' }, /"x-a" has a character that no header can have/],
  ['an empty name', { '': 'x' }, /"" is not a header/],
  ['a name that is none', { 'bad name': 'x' }, /"bad name" is not a header/],
  ['an object', { 'X-A': { b: 1 } }, /expected text in "x-a", got object/],
  ['null', { 'X-A': null }, /expected text in "x-a", got null/],
  ['an object beside other fields', { 'X-A': { b: 1 } }, /expected text in "x-a"/, { order: 1 }],
  ['a list with an object', { 'X-A': ['a', {}] }, /expected text in "x-a"/],
  ['101 headers', Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`x-${n}`, '1'])), /at most 100/],
  ['more than 16 KiB', { 'X-A': 'x'.repeat(16 << 10) }, /16384 bytes/],
  ['a long name with many values', { [`X-${'a'.repeat(200)}`]: Array(90).fill('') }, /16384 bytes/],
  ['more than 100 values of one name', { 'X-A': Array(101).fill('') }, /at most 100/],
  [
    'two types',
    { 'Content-Type': ['text/html', 'text/plain'] },
    /expected one value in "content-type", got 2/,
  ],
] as const) {
  answering(`with ${what} in its headers fails the run`, async () => {
    const {
      status,
      json,
      headers: sent,
    } = await reply({
      status: 200,
      headers: { 'Content-Type': 'text/html', 'X-Before': '1', ...headers },
      ...more,
    })
    assert.is(status, 500)
    assert.match(sent.get('content-type') ?? '', 'application/json')
    assert.is(sent.get('x-before'), null)
    const run = await api.get<Run>(`/runs/${(json as { error: Record<string, string> }).error['run_id']}`)
    assert.equal([run.status, run.error?.code], ['failed', 'function_failed'])
    assert.match(run.error?.message ?? '', message)
  })
}

answering(
  'may have headers that JSON makes texts, and those that are left out may have any value',
  async () => {
    await deploy(api, 'objects', {
      'o.js': `import { fn } from 'svc'
export const objects = fn({ webhook: { service: 's', path: '/objects' } }, () => ({
  status: 200,
  headers: {
    Location: new URL('https://a.example/b'), 'X-None': undefined, 'X-Day': new Date(0),
    Date: null, Connection: 'x-hop', 'X-Hop': null, 'X-Accel-Limit-Rate': {},
  },
}))`,
    })
    const [webhook] = (await api.page<Webhook>('/projects/objects/webhooks')).data
    const { status, headers } = await callHook(webhook?.url ?? '', { redirect: 'manual' })
    assert.is(status, 200)
    assert.is(headers.get('location'), 'https://a.example/b')
    assert.is(headers.get('x-day'), '1970-01-01T00:00:00.000Z')
    assert.is(headers.get('x-none'), null)
  },
)

answering('may have a list with one type, and leaves a header with an empty list out', async () => {
  const type = 'application/feed+json'
  const sent = await reply({ status: 200, headers: { 'Content-Type': [type], 'X-A': [] }, body: 'text' })
  assert.equal([sent.status, sent.headers.get('content-type'), sent.json], [200, type, 'text'])
  assert.is(sent.headers.get('x-a'), null)
  const untyped = await reply({ status: 200, headers: { 'Content-Type': [] }, body: 'text' })
  assert.equal([untyped.status, untyped.json], [200, 'text'])
})

answering('to a function that fails is 500 with the id of its run, and is not retried', async () => {
  const { status, json, text } = await callHook(urlOf('throws'))
  const { code, message, run_id } = (json as { error: Record<string, string> }).error
  assert.equal([status, code], [500, 'internal_server_error'])
  assert.is(message, `The function failed with function_failed: its error is in the run ${run_id}`)
  assert.not.match(text, 'out of order')
  const [run] = (await api.page<Run>('/runs?limit=1')).data as [Run]
  assert.equal([run.run_id, run.status, run.retry_at, run.fn], [run_id, 'failed', null, 'h/throws'])
  assert.is(run.error?.message, 'out of order')
})

for (const [value, got] of [
  [{ status: 99 }, '99'],
  [{ status: 600, body: 1 }, '600'],
  [{ status: 200.5 }, '200.5'],
  [{ status: '404' }, '"404"'],
  [{ status: 'created', body: 1 }, '"created"'],
  [{ status: null, headers: {} }, 'null'],
] as const) {
  answering(`with an invalid status fails the run: ${JSON.stringify(value)}`, async () => {
    const { status, json } = await reply(value)
    const { run_id } = (json as { error: Record<string, string> }).error
    assert.is(status, 500)
    const run = await api.get<Run>(`/runs/${run_id}`)
    assert.equal([run.status, run.error?.code], ['failed', 'function_failed'])
    assert.is(
      run.error?.message,
      `Expected the status of a reply to be a whole number from 200 to 599, got ${got}`,
    )
  })
}

answering('of a function that fails is not logged as an error of the service', async () => {
  await callHook(urlOf('throws'))
  await reply({ status: 200, headers: { 'bad name': 'x' } })
  assert.not.match(server.output.join('\n'), /A request failed|out of order|bad name/)
})

answering('ends after the timeout of the function', async () => {
  for (const name of ['slow', 'long']) {
    const { status, json } = await callHook(urlOf(name))
    assert.is(status, 500)
    assert.match((json as { error: { message: string } }).error.message, /did not end within (300|5000) ms/)
  }
})

answering('belongs to its own run', async () => {
  await reply('once')
  const [run] = (await api.page<Run>('/runs?limit=1')).data as [Run]
  assert.equal([run.run_type, run.status, run.result, run.event_id], ['call', 'succeeded', 'once', null])
})

answering.run()

const redeploying = suite('webhooks over redeploys')

redeploying('keep their URL, lose it with their metadata, and get it back', async () => {
  const url = urlOf('reply')
  await deploy(api, 'hooks', { 'moved/h.js': HOOKS })
  assert.equal(await hookUrls(api), known)
  assert.is((await callHook(url, { body: '7' })).json, 7)

  await deploy(api, 'hooks', { 'h.js': `export const reply = ({ body }) => body` })
  assert.is((await hookUrls(api)).size, 0)
  assert.is((await callHook(url, { body: '7' })).status, 404)

  await deploy(api, 'hooks', { 'h.js': HOOKS })
  assert.is((await callHook(url, { body: '7' })).json, 7)
})

redeploying('are not served by two projects', async () => {
  const clash = deploy(api, 'thief', { 'h.js': HOOKS })
  await clash.then(
    () => assert.unreachable('expected a refusal'),
    (error: Error) => assert.match(error.message, '409'),
  )
})

redeploying('are removed with their project', async () => {
  await api.remove('/projects/hooks')
  assert.is((await callHook(urlOf('reply'), { body: '7' })).status, 404)
})

redeploying('write no token to the log', () => {
  const tokens = [...known.values()].map((url) => url.split('/').at(-1) ?? url)
  assert.equal(
    server.output.filter((line) => tokens.some((token) => line.includes(token))),
    [],
  )
})

redeploying.after(() => server.stop())
redeploying.run()
