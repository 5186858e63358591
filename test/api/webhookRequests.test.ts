import { request } from 'node:http'
import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import type { Run } from '../support/build.ts'
import { until } from '../support/until.ts'
import { suite } from '../support/suite.ts'
import { callHook, deployHooks, METHODS } from './hooks.ts'

const server = await startServer()
const { api } = server
const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
const known = await deployHooks(api)
const urlOf = (name: string) => known.get(`POST s.1/${name}`) ?? ''

type Request = Record<string, unknown> & { headers: Record<string, string> }
const echo = async (init: RequestInit = {}, query = '') =>
  (await callHook(urlOf('echo') + query, init)).json as Request

const asking = suite('a webhook request')

asking('by HEAD reaches the endpoint of GET, and its reply has no body', async () => {
  const url = known.get('GET methods/all') ?? ''
  const { status, headers, text } = await callHook(url, { method: 'HEAD' })
  assert.equal([status, text], [200, ''])
  assert.match(headers.get('content-type') ?? '', 'application/json')
  const [run] = (await api.page<Run>('/runs?limit=1')).data as [Run]
  assert.is((run.result as Request)['method'], 'HEAD')
  assert.is((await callHook(urlOf('echo'), { method: 'HEAD' })).status, 404)
})

for (const method of METHODS) {
  asking(`by ${method} reaches the endpoint of its method`, async () => {
    const url = known.get(`${method} methods/all`) ?? ''
    const { status, json } = await callHook(url, { method })
    assert.equal(
      [status, (json as Request)['method'], (json as Request)['url']],
      [200, method, '/webhook/methods/all'],
    )
    for (const other of METHODS)
      if (other !== method) assert.is((await callHook(url, { method: other })).status, 404)
  })
}

asking('has the token in original-url only', async () => {
  const got = await echo({}, '?a=1&b=%20x')
  const token = urlOf('echo').split('/').at(-1) ?? ''
  assert.is(got['original-url'], `${urlOf('echo')}?a=1&b=%20x`)
  assert.is(got['url'], '/webhook/s.1/echo')
  assert.not.match(JSON.stringify({ ...got, 'original-url': '' }), token)
})

asking('contains query and headers, with names in lower case', async () => {
  const got = await echo(
    { headers: { 'X-One': 'a', 'x-TWO': 'b' } },
    '?a=1&list=1&list=2&empty=&%C3%BC=%E4%B8%96',
  )
  assert.equal(got['query'], { a: '1', list: ['1', '2'], empty: '', ü: '世' })
  assert.equal([got.headers['x-one'], got.headers['x-two']], ['a', 'b'])
})

asking('contains the address of its connection, whatever its headers say', async () => {
  for (const headers of [{}, { 'X-Forwarded-For': '203.0.113.7, 10.0.0.1' }, { 'X-Real-IP': '192.0.2.1' }])
    assert.is((await echo({ headers }))['ip'], '127.0.0.1')
})

asking('has the URL of the service in original-url, whatever its headers say', async () => {
  const got = await echo({
    headers: { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'gopher' },
  })
  assert.is(got['original-url'], urlOf('echo'))
})

asking('contains no credential of this service, but any other', async () => {
  for (const authorization of [
    `bearer  ${api.key}`,
    `Token ${api.key}`,
    api.key,
    `Custom key="${api.key}", id=1`,
    `Bearer ${operatorToken}`,
  ])
    assert.not('authorization' in (await echo({ headers: { Authorization: authorization } })).headers)
  for (const authorization of ['Basic YTpi', 'Bearer of-another-service'])
    assert.is(
      (await echo({ headers: { Authorization: authorization } })).headers['authorization'],
      authorization,
    )
  const { headers } = await echo({ headers: { 'Proxy-Authorization': 'Basic YTpi', Cookie: 'a=1' } })
  assert.equal(['proxy-authorization' in headers, headers['cookie']], [false, 'a=1'])
})

const bodies: [name: string, type: string, raw: string, body: unknown][] = [
  ['JSON', 'application/json', '{"a": [1, "ü"]}', { a: [1, 'ü'] }],
  ['JSON of another name', 'application/vnd.api+json', '{"a":1}', { a: 1 }],
  ['a form', 'application/x-www-form-urlencoded', 'a=1&b=x+y&c=%C3%BC', { a: '1', b: 'x y', c: 'ü' }],
  ['a form in capitals', 'Application/X-WWW-Form-Urlencoded; Charset=UTF-8', 'a=1', { a: '1' }],
  [
    'a form with repeated fields',
    'application/x-www-form-urlencoded',
    'a=1&b=2&a=&__proto__=x',
    JSON.parse('{"a":["1",""],"b":"2","__proto__":"x"}'),
  ],
  ['JSON with a byte order mark', 'application/json', '\uFEFF{"a":1}', { a: 1 }],
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

asking('without a body contains no body fields', async () => {
  const got = await echo()
  for (const field of ['body', 'body-raw', 'body-bytes']) assert.not(field in got)
})

asking('carries binary bytes unchanged', async () => {
  const { json } = await callHook(urlOf('bytes'), { body: new Uint8Array([0xff, 0x00, 0x80, 0x41]) })
  assert.equal(json, { raw: '\ufffd\0\ufffdA', same: true, bytes: 'ff008041' })
})

asking('carries a body of a megabyte', async () => {
  const raw = JSON.stringify({ text: 'é'.repeat(500_000) })
  assert.is((await echo({ body: raw }))['body-raw'], raw)
})

const measure = async (body: RequestInit['body'], type = 'application/json') => {
  const init = { body, headers: { 'Content-Type': type }, duplex: 'half' } as RequestInit
  return (await callHook(urlOf('measure'), init)).json
}

asking('of 25 MiB of text reaches the function', async () => {
  const raw = `"${'x'.repeat((25 << 20) - 2)}"`
  assert.equal(await measure(raw), { raw: 25 << 20, type: 'string', depth: 0, count: (25 << 20) - 2 })
})

asking('whose JSON is deeper than any stack reaches the function', async () => {
  const depth = 400_000
  assert.equal(await measure('['.repeat(depth) + ']'.repeat(depth)), {
    raw: 2 * depth,
    type: 'object',
    depth,
    count: 1,
  })
})

asking('that would need too much memory when it is parsed remains text', async () => {
  const raw = `[${'{},'.repeat(2_000_000)}1]`
  assert.equal(await measure(raw), { raw: raw.length, type: 'string', depth: 0, count: raw.length })
  const form = 'a=&'.repeat(2_000_000)
  assert.equal(await measure(form, 'application/x-www-form-urlencoded'), {
    raw: form.length,
    type: 'string',
    depth: 0,
    count: form.length,
  })
})

asking('of unknown size reaches the function, whether it is small or large', async () => {
  const stream = (size: number) => new Blob([`"${'x'.repeat(size - 2)}"`]).stream()
  for (const size of [2, 100, 3 << 20])
    assert.equal(await measure(stream(size)), { raw: size, type: 'string', depth: 0, count: size - 2 })
})

asking('of unknown size is refused when it grows over 25 MiB', async () => {
  const status = await new Promise((resolve, reject) => {
    const sent = request(urlOf('echo'), { method: 'POST' }, (response) => {
      resolve(response.statusCode)
      response.resume()
      sent.destroy()
    })
    sent.on('error', reject)
    for (let mib = 0; mib < 26; mib++) sent.write(Buffer.alloc(1 << 20, 'x'))
  })
  assert.is(status, 413)
})

asking('with a large body is replayed with the same body', async () => {
  const raw = JSON.stringify({ text: 'y'.repeat(2 << 20) })
  await measure(raw)
  const [run] = (await api.page<Run>('/runs?type=call&limit=1')).data
  const { event_id } = await api.post<{ event_id: string }>('/events', {
    type: 'svc:replay',
    data: { run_id: run?.run_id },
  })
  await until(async () => {
    const [replay] = (await api.page<Run>(`/events/${event_id}/runs`)).data
    return replay?.status === 'succeeded' && (replay.result as { raw: number }).raw === raw.length
  })
})

asking('appears in the log of its run with a small body, parsed', async () => {
  await measure('{"a":[1]}')
  const [run] = (await api.page<Run>('/runs?type=call&limit=1')).data
  const { request } = await api.get<{ request: { body: unknown } }>(`/runs/${run?.run_id}/logs`)
  assert.equal(request.body, { a: [1] })
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

finding('is refused in the same way for every error in the URL', async () => {
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
    url.replace(/\/webhook\/[^/]+/, '/webhook/none'),
    url.replace('/dev/', '/none/'),
    url.replace('/local/dev/', '/local%2Fdev/'),
    url.replace('/s.1/echo/', '/s.1%2fecho/'),
    `${url}/`,
    url.replace('/webhook/', '/webhook//'),
    url.replace('/echo/', '/ECHO/'),
    url.replace('/echo/', '/%ff/'),
  ]
  for (const path of wrong) {
    const { status, json } = await callHook(path)
    const { request_id, ...error } = (json as { error: Record<string, string> }).error
    assert.equal([status, error], [404, { code: 'not_found', message: 'No webhook here' }], path)
    assert.ok(request_id)
  }
})

finding('is found again below a deep path', async () => {
  assert.is((await callHook(known.get('POST s.1/a/b/c') ?? '')).json, '/webhook/s.1/a/b/c')
})

finding.after(() => server.stop())
finding.run()

const behind = suite('a webhook request behind a trusted proxy')

behind('has the address that the proxy appended, and the public URL', async () => {
  const proxied = await startServer({
    env: { SVC_TRUSTED_PROXIES: '127.0.0.0/8', SVC_PUBLIC_URL: 'https://svc.example/base' },
  })
  const listed = (await deployHooks(proxied.api)).get('POST s.1/echo') ?? ''
  assert.ok(listed.startsWith('https://svc.example/base/webhook/'))
  const { json } = await callHook(`${listed.replace('https://svc.example/base', proxied.url)}?a=1`, {
    headers: { 'X-Forwarded-For': '1.1.1.1, 203.0.113.7', 'X-Forwarded-Proto': 'http' },
  })
  assert.equal([(json as Request)['ip'], (json as Request)['original-url']], ['203.0.113.7', `${listed}?a=1`])
  await proxied.stop()
})
behind.run()
