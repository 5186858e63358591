import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { threadClock } from '../support/threadClock.ts'

const server = await startServer({ env: { SVC_OPERATOR_HOST: 'operator.test' } })
const { api } = server
const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))

/** Sends text as it is and returns status and text of the reply. */
const sent = async (...lines: readonly string[]): Promise<{ status: number; text: string }> => {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.write([...lines, 'Connection: close', '', ''].join('\r\n')) // the server ends the connection
  const text = (await buffer(socket)).toString()
  return { status: Number(text.split(' ')[1]), text }
}
const KEY = `Authorization: Bearer ${api.key}`

const head = suite('a request head')

for (const [header, value, other] of [
  ['Authorization', `Bearer ${api.key}`, `Bearer ${api.key}`],
  ['Authorization', `Bearer ${api.key}`, 'Bearer other'],
  ['Host', 'svc', 'other'],
  ['Idempotency-Key', 'a', 'a'],
  ['Content-Type', 'application/json', 'text/plain'],
  ['Last-Event-ID', '1', '2'],
  ['Range', 'bytes=0-1', 'bytes=2-3'],
  ['Content-Length', '0', '0'],
] as const)
  head(`is refused with two headers ${header}, ${value === other ? 'equal' : 'different'}`, async () => {
    const { status, text } = await sent(
      'GET /v1/env HTTP/1.1',
      ...(header === 'Host' ? [] : ['Host: svc']),
      ...(header === 'Authorization' ? [] : [KEY]),
      `${header}: ${value}`,
      `${header.toLowerCase()}: ${other}`,
    )
    assert.is(status, 400, text)
    assert.match(text, '"bad_request"')
  })

for (const [header, value, status, message] of [
  ['Transfer-Encoding', 'gzip, chunked', 400, 'transfer-encoding: expected chunked'],
  ['Transfer-Encoding', 'Chunked', 201, ''],
  ['Expect', 'other', 400, 'expect: expected 100-continue'],
  ['Expect', '100-Continue', 201, ''],
] as const)
  head(`with ${header}: ${value} gets ${status}`, async () => {
    const body = '{"event_type":"none"}'
    const { text } = await sent(
      'POST /v1/events HTTP/1.1',
      'Host: svc',
      KEY,
      ...(header === 'Expect' ? ['Transfer-Encoding: chunked'] : []),
      `${header}: ${value}`,
      'Connection: close',
      '',
      `${body.length.toString(16)}\r\n${body}\r\n0`,
    )
    const replies = text.split('HTTP/1.1 ').map((reply) => Number(reply.slice(0, 3)))
    assert.is(replies.at(-1), status, text)
    assert.ok(text.includes(message), text)
    assert.match(text, /X-Request-Id/i)
  })

for (const host of [
  'a b',
  'a@b',
  'a/b',
  'http://a',
  '*',
  'a,b',
  'a:b',
  '[::1',
  'é',
  '-x',
  'a:123456',
  'a..b:1:2',
  '%61',
])
  head(`is refused with the host ${host}`, async () => {
    const { status, text } = await sent('GET /v1/env HTTP/1.1', `Host: ${host}`, KEY)
    assert.is(status, 400, text)
  })

for (const host of ['svc', 'SVC.example', 'a_b', '127.0.0.1:80', '[::1]:8080', 'a.example.', 'a:'])
  head(`is accepted with the host ${host}`, async () => {
    assert.is((await sent('GET /v1/env HTTP/1.1', `Host: ${host}`, KEY)).status, 200)
  })

head('needs a host, unless it is of HTTP/1.0', async () => {
  const { status, text } = await sent('GET /v1/env HTTP/1.1', KEY)
  assert.is(status, 400)
  assert.match(text, '"host: is required"')
  assert.is((await sent('GET /v1/env HTTP/1.0', KEY)).status, 200)
})

for (const [target, status] of [
  ['/v1/env', 200],
  ['http://svc/v1/env', 200],
  ['http://SVC/v1/env?', 200],
  ['http://other/v1/env', 400],
  ['http://svc@other/v1/env', 400],
  ['/v1\\env#', 400],
  ['/v1/env#x', 400],
  ['http://svc/v1\\env', 400],
  ['v1/env', 400],
  ['/v1/env/', 404],
  ['/V1/env', 404],
  ['/v1/ENV', 404],
  ['/v1%2fenv', 404],
  ['/%761/env', 404],
  ['//v1/env', 404],
  ['/v1/./env', 404],
  ['/v1/x/../env', 404],
  ['/v1/env;x', 404],
] as const)
  head(`with the target ${target} gets ${status}`, async () => {
    assert.is((await sent(`GET ${target} HTTP/1.1`, 'Host: svc', KEY)).status, status)
  })

for (const path of [
  '/status',
  '/healthz',
  '/readyz',
  '/docs',
  '/openapi.json',
  '/v1/projects',
  '/operator/orgs',
])
  for (const other of [path.toUpperCase(), `${path}/`, path.replace(/\/(.)/, '//$1')])
    head(`reaches no route by ${other}`, async () => {
      const key = path === '/operator/orgs' ? `Authorization: Bearer ${operatorToken}` : KEY
      assert.is((await sent(`GET ${other} HTTP/1.1`, 'Host: operator.test', key)).status, 404)
    })

head.run()

/** As many parameters as a request can have. */
const MANY = 'a&'.repeat(7900)

const cpu = threadClock()

/** The processor time of work in this thread, in which the service runs too, milliseconds. */
const cpuOf = async (work: () => unknown): Promise<number> => {
  const began = cpu()
  await work()
  return cpu() - began
}

const large = suite('a head of 16 KiB')

for (const [path, status] of [
  ['/status', 400],
  ['/ui', 200],
  ['/v1/env/subscribe', 401],
] as const)
  large(
    `with ${MANY.length / 2} parameters for ${path} takes less than a hundred passes over them`,
    async () => {
      const passes = await cpuOf(() => {
        for (let pass = 0; pass < 100; pass++) Array.from(new URLSearchParams(MANY))
      })
      const took = await cpuOf(async () => {
        assert.is((await sent(`GET ${path}?${MANY} HTTP/1.1`, 'Host: svc')).status, status)
      })
      assert.ok(took < passes, `${took} of ${passes} ms`)
    },
  )

large('gives a parameter all its values, also one with the name of a prototype', async () => {
  const refused = (query: string) => sent(`GET /v1/runs?${query} HTTP/1.1`, 'Host: svc', KEY)
  assert.match((await refused('limit=1&offset=2&limit=3')).text, 'limit: expected once, got 2 times')
  assert.match((await refused('__proto__=1')).text, '__proto__: not a parameter of this endpoint')
})

large('leads to the dashboard only if its Accept is short', async () => {
  const accepting = (accept: string) => sent('GET / HTTP/1.1', 'Host: svc', `Accept: ${accept}`)
  assert.is((await accepting('text/html,application/xhtml+xml,*/*;q=0.8')).status, 302)
  assert.is((await accepting(`text/html;x="${',;'.repeat(7900)}`)).status, 404)
  assert.is((await accepting(`text/html${', a/b'.repeat(3000)}`)).status, 404)
})

large.run()

const operator = suite('SVC_OPERATOR_HOST')
operator('is the only host with the operator API', async () => {
  const listed = (host: string) =>
    sent('GET /operator/orgs HTTP/1.1', `Host: ${host}`, `Authorization: Bearer ${operatorToken}`)
  for (const host of ['operator.test', 'Operator.Test:8443', 'operator.test.'])
    assert.is((await listed(host)).status, 200, host)
  for (const host of ['svc', '127.0.0.1', 'operator.test.evil'])
    assert.match((await listed(host)).text, '"not_found"', host)
  assert.is((await sent('GET /v1/env HTTP/1.1', 'Host: svc', KEY)).status, 200)
})
operator('is the only host where the dashboard signs the operator in', async () => {
  const asked = (host: string) => sent('GET /operator/sign-in HTTP/1.1', `Host: ${host}`)
  assert.is((await asked('operator.test')).status, 401)
  assert.is((await asked('svc')).status, 404)
  assert.is((await sent('GET /ui HTTP/1.1', 'Host: svc')).status, 200)
})
operator(
  'or the address of a node has the metrics, because a monitoring system reads each node',
  async () => {
    const at = (host: string) =>
      sent('GET /metrics HTTP/1.1', `Host: ${host}`, `Authorization: Bearer ${operatorToken}`)
    for (const host of ['operator.test', '127.0.0.1:8080', '[::1]:8080'])
      assert.is((await at(host)).status, 200, host)
    assert.is((await at('svc')).status, 404)
  },
)
operator.after(() => server.stop())
operator.run()
