import { request } from 'node:http'
import * as assert from 'uvu/assert'
import { type Answer } from '../support/http.ts'
import { deploy, type Run, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

const hookOf = (name: string, code: string, more = '') =>
  `export const ${name} = fn({ webhook: { service: 's.1', path: '/${name}' }${more} }, ${code})\n`
const FUNCTIONS = `
import { setTimeout } from 'node:timers/promises'
import { fn, currentRun } from 'svc'
${METHODS.map((method) => `export const on${method} = fn({ webhook: { service: 'methods', path: '/all', method: '${method}' } }, (request) => request)`).join('\n')}
${hookOf('echo', '(request) => request')}
${hookOf('bytes', `(request) => ({ raw: request.bodyRaw, same: request['body-bytes'] === request.bodyBytes, bytes: request.bodyBytes && Buffer.from(request.bodyBytes).toString('hex') })`)}
${hookOf('reply', '({ body }) => body')}
${hookOf('nothing', '() => {}')}
${hookOf('throws', `() => { throw new Error('out of order') }`, ', retry: 3')}
${hookOf('slow', '() => setTimeout(10_000, null, { signal: currentRun().signal })', ', timeout: 300')}
${hookOf('long', '() => setTimeout(10_000, null, { signal: currentRun().signal })')}
export const deep = fn({ webhook: { service: 's.1', path: '/a/b/c' } }, ({ url }) => url)
`

const server = await startServer({ env: { SVC_WEBHOOK_TIMEOUT_MS: '600' } })
const { api } = server
const build = { 'h.js': FUNCTIONS }
await deploy(api, 'hooks', build)
const urls = async () => {
  const { data } = await api.page<Webhook>('/projects/hooks/webhooks?limit=100')
  return new Map(data.map(({ method, service, path, url }) => [`${method} ${service}${path}`, url]))
}
const known = await urls()
const urlOf = (name: string, method = 'POST') => known.get(`${method} s.1/${name}`) ?? ''

/** Webhooks have no credential: the token is in the URL. */
const call = async (url: string, { method = 'POST', ...init }: RequestInit = {}): Promise<Answer> => {
  const response = await fetch(url, { method, ...init })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: text === '' ? undefined : JSON.parse(text),
  }
}
type Request = Record<string, unknown> & { headers: Record<string, string> }
const echo = async (init: RequestInit = {}, query = '') =>
  (await call(urlOf('echo') + query, init)).json as Request

const asking = suite('a webhook request')

for (const method of METHODS) {
  asking(`by ${method} reaches the endpoint of its method`, async () => {
    const url = known.get(`${method} methods/all`) ?? ''
    const { status, json } = await call(url, { method })
    assert.equal(
      [status, (json as Request)['method'], (json as Request)['url']],
      [200, method, '/webhook/methods/all'],
    )
    for (const other of METHODS)
      if (other !== method) assert.is((await call(url, { method: other })).status, 404)
  })
}

asking('has the token in original-url only', async () => {
  const got = await echo({}, '?a=1&b=%20x')
  const token = urlOf('echo').split('/').at(-1) ?? ''
  assert.is(got['original-url'], `${urlOf('echo')}?a=1&b=%20x`)
  assert.is(got['url'], '/webhook/s.1/echo')
  assert.not.match(JSON.stringify({ ...got, 'original-url': '' }), token)
})

asking('carries query and headers, names in lower case', async () => {
  const got = await echo(
    { headers: { 'X-One': 'a', 'x-TWO': 'b' } },
    '?a=1&list=1&list=2&empty=&%C3%BC=%E4%B8%96',
  )
  assert.equal(got['query'], { a: '1', list: ['1', '2'], empty: '', ü: '世' })
  assert.equal([got.headers['x-one'], got.headers['x-two']], ['a', 'b'])
})

asking('tells the address that a proxy told', async () => {
  assert.is(
    (await echo({ headers: { 'X-Forwarded-For': '203.0.113.7, 10.0.0.1', 'X-Real-IP': '192.0.2.1' } }))['ip'],
    '203.0.113.7',
  )
  assert.is((await echo({ headers: { 'X-Real-IP': '192.0.2.1' } }))['ip'], '192.0.2.1')
  assert.not('ip' in (await echo()))
})

const bodies: [name: string, type: string, raw: string, body: unknown][] = [
  ['JSON', 'application/json', '{"a": [1, "ü"]}', { a: [1, 'ü'] }],
  ['JSON of another name', 'application/vnd.api+json', '{"a":1}', { a: 1 }],
  ['a form', 'application/x-www-form-urlencoded', 'a=1&b=x+y&c=%C3%BC', { a: '1', b: 'x y', c: 'ü' }],
  ['text', 'text/plain', 'plain ü', 'plain ü'],
  ['JSON that is none', 'application/json', '{"a":', '{"a":'],
]
for (const [name, type, raw, body] of bodies) {
  asking(`carries its body parsed and raw: ${name}`, async () => {
    const got = await echo({ body: raw, headers: { 'Content-Type': type } })
    assert.equal([got['body'], got['body-raw'], got.headers['content-type']], [body, raw, type])
    assert.not('body-bytes' in got)
  })
}

asking('without a body has none', async () => {
  const got = await echo()
  for (const field of ['body', 'body-raw', 'body-bytes']) assert.not(field in got)
})

asking('carries bytes that are no text verbatim', async () => {
  const { json } = await call(urlOf('bytes'), { body: new Uint8Array([0xff, 0x00, 0x80, 0x41]) })
  assert.equal(json, { raw: '\ufffd\0\ufffdA', same: true, bytes: 'ff008041' })
})

asking('carries a body of a megabyte', async () => {
  const raw = JSON.stringify({ text: 'é'.repeat(500_000) })
  assert.is((await echo({ body: raw }))['body-raw'], raw)
})

asking('of more than 25 MiB is refused', async () => {
  const status = await new Promise((resolve, reject) => {
    const sent = request(
      urlOf('echo'),
      { method: 'POST', headers: { 'Content-Length': (25 << 20) + 1 } },
      (response) => {
        resolve(response.statusCode)
        response.resume()
        sent.destroy()
      },
    )
    sent.on('error', reject).flushHeaders()
  })
  assert.is(status, 413)
})

asking.run()

const finding = suite('an endpoint that is not there')

finding('gets the same answer whatever is wrong with the URL', async () => {
  const url = urlOf('echo')
  const token = url.split('/').at(-1) ?? ''
  const other = urlOf('reply').split('/').at(-1) ?? ''
  const wrong = [
    url.slice(0, -1),
    `${url}x`,
    url.replace(token, other),
    url.replace(token, ''),
    url.slice(0, -token.length - 1),
    url.replace('/echo/', '/none/'),
    url.replace('/s.1/', '/none/'),
    url.replace('/local/', '/none/'),
    url.replace('/dev/', '/none/'),
  ]
  for (const path of wrong) {
    const { status, json } = await call(path)
    const { request_id, ...error } = (json as { error: Record<string, string> }).error
    assert.equal([status, error], [404, { code: 'not_found', message: 'No webhook here' }], path)
    assert.ok(request_id)
  }
})

finding('is found again below a deep path', async () => {
  assert.is((await call(known.get('POST s.1/a/b/c') ?? '')).json, '/webhook/s.1/a/b/c')
})

finding.run()

const answering = suite('a webhook reply')

const reply = (value: unknown) => call(urlOf('reply'), { body: JSON.stringify(value) })

answering('is what the function says: status, headers and body', async () => {
  const { status, headers, json } = await reply({
    status: 202,
    headers: { 'X-Mine': 'yes', 'Set-Cookie': ['a=1', 'b=2'] },
    body: { ok: true },
  })
  assert.equal([status, headers.get('x-mine'), json], [202, 'yes', { ok: true }])
  assert.equal(headers.getSetCookie(), ['a=1', 'b=2'])
  assert.match(headers.get('content-type') ?? '', 'application/json')
})

answering('may have another content type, or no body', async () => {
  const { headers, text } = await fetch(urlOf('reply'), {
    method: 'POST',
    body: JSON.stringify({ status: 200, headers: { 'Content-Type': 'text/html' }, body: 'text' }),
  }).then(async (response) => ({ headers: response.headers, text: await response.text() }))
  assert.equal([headers.get('content-type'), text], ['text/html', '"text"'])
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
  { status: 99 },
  { status: 600 },
  { status: 200.5 },
]) {
  answering(`is 200 with any other value as JSON: ${JSON.stringify(value)}`, async () => {
    const { status, json, headers } = await reply(value)
    assert.equal([status, json], [200, value])
    assert.match(headers.get('content-type') ?? '', 'application/json')
  })
}

answering('is null when the function returns nothing', async () =>
  assert.is((await call(urlOf('nothing'))).json, null),
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

answering('to a function that fails is 500 with the error, and is not retried', async () => {
  const { status, json } = await call(urlOf('throws'))
  const { code, message } = (json as { error: Record<string, string> }).error
  assert.equal([status, code, message], [500, 'internal_server_error', 'out of order'])
  const [run] = (await api.page<Run>('/runs?limit=1')).data as [Run]
  assert.equal([run.status, run.retry_at, run.fn], ['failed', null, 'h/throws'])
})

answering('does not wait for ever', async () => {
  for (const name of ['slow', 'long']) {
    const { status, json } = await call(urlOf(name))
    assert.is(status, 500)
    assert.match((json as { error: { message: string } }).error.message, /did not end within (300|600) ms/)
  }
})

answering('belongs to a run of its own', async () => {
  await reply('once')
  const [run] = (await api.page<Run>('/runs?limit=1')).data as [Run]
  assert.equal([run.run_type, run.status, run.result, run.event_id], ['call', 'succeeded', 'once', null])
})

answering.run()

const redeploying = suite('webhooks over redeploys')

redeploying('keep their URL, lose it with their metadata, and get it back', async () => {
  const url = urlOf('reply')
  await deploy(api, 'hooks', { 'moved/h.js': FUNCTIONS })
  assert.equal(await urls(), known)
  assert.is((await call(url, { body: '7' })).json, 7)

  await deploy(api, 'hooks', { 'h.js': `export const reply = ({ body }) => body` })
  assert.is((await urls()).size, 0)
  assert.is((await call(url, { body: '7' })).status, 404)

  await deploy(api, 'hooks', build)
  assert.is((await call(url, { body: '7' })).json, 7)
})

redeploying('are not served by two projects', async () => {
  const clash = deploy(api, 'thief', { 'h.js': FUNCTIONS })
  await clash.then(
    () => assert.unreachable('expected a refusal'),
    (error: Error) => assert.match(error.message, '409'),
  )
})

redeploying('are gone with their project', async () => {
  await api.remove('/projects/hooks')
  assert.is((await call(urlOf('reply'), { body: '7' })).status, 404)
})

redeploying('write no token to the log', () => {
  const tokens = [...known.values()].map((url) => url.split('/').at(-1) ?? url)
  assert.equal(
    server.log.filter((line) => tokens.some((token) => line.includes(token))),
    [],
  )
})

redeploying.after(() => server.stop())
redeploying.run()
