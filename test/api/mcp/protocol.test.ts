import { request } from 'node:http'
import * as assert from 'uvu/assert'
import { newId } from '../../../src/ids.ts'
import { deploy } from '../../support/build.ts'
import type { Answer } from '../../support/http.ts'
import { startServer } from '../../support/server.ts'
import { suite } from '../../support/suite.ts'
import { newSession } from '../issuing.ts'
import { connect, TOOLS } from './client.ts'

const PAGE = 'https://app.example'
const server = await startServer({ env: { SVC_CORS_ORIGINS: PAGE } })
const { api } = server
await deploy(api, 'shop', TOOLS)
const url = `${api.url}/mcp`

const send = (body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  api.send('POST', url, { body, headers })

const rpc = async (message: object, headers: Record<string, string> = {}) => {
  const { status, json } = await send({ jsonrpc: '2.0', ...message }, headers)
  assert.is(status, 200)
  return json as {
    readonly id: unknown
    readonly result?: Readonly<Record<string, unknown>>
    readonly error?: { readonly code: number; readonly message: string }
  }
}

const protocol = suite('POST /mcp', { timeoutMs: 60_000 })

protocol('agrees on the version of the client, or offers its newest one', async () => {
  const initialize = async (protocolVersion: unknown) =>
    (await rpc({ id: 1, method: 'initialize', params: { protocolVersion } })).result?.['protocolVersion']
  assert.is(await initialize('2025-06-18'), '2025-06-18')
  assert.is(await initialize('2025-11-25'), '2025-11-25')
  for (const other of ['1999-01-01', 5, undefined]) assert.is(await initialize(other), '2025-11-25')
})

protocol('gives each client a session, and answers without one too', async () => {
  const initialized = async () =>
    (await send({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} })).headers.get('mcp-session-id')
  const [one, other] = [await initialized(), await initialized()]
  assert.match(one ?? '', /^[0-9a-f-]{36}$/)
  assert.is.not(one, other)
  assert.equal((await rpc({ id: 'p', method: 'ping' })).result, {})
})

for (const [name, message, code, told] of [
  ['an unknown method', { id: 1, method: 'tools/none' }, -32601, 'got "tools/none"'],
  ['an unknown tool', { id: 1, method: 'tools/call', params: { name: 'none' } }, -32602, 'no tool "none"'],
  ['no name', { id: 1, method: 'tools/call' }, -32602, 'name: expected the name of a tool'],
  [
    'arguments that are no object',
    { id: 1, method: 'tools/call', params: { name: 'why', arguments: [] } },
    -32602,
    'arguments: expected an object, got []',
  ],
  [
    'a progress token that is an object',
    { id: 1, method: 'tools/call', params: { name: 'why', _meta: { progressToken: {} } } },
    -32602,
    '_meta.progressToken: expected',
  ],
  [
    'a cursor that is no name',
    { id: 1, method: 'tools/list', params: { cursor: 'x y' } },
    -32602,
    'cursor: expected',
  ],
  ['params that are a list', { id: 1, method: 'ping', params: [] }, -32600, 'params: expected an object'],
  ['no method', { id: 1 }, -32600, 'method: expected'],
  [
    'an unknown field',
    { id: 1, method: 'ping', param: {} },
    -32600,
    'param: unknown field; expected jsonrpc, id, method, params',
  ],
] as const)
  protocol(`answers ${name} with the error ${code}`, async () => {
    const { id, error } = await rpc(message)
    assert.equal([id, error?.code], [1, code])
    assert.match(error?.message ?? '', told)
  })

for (const [name, body, told] of [
  ['a batch', [{ jsonrpc: '2.0', id: 1, method: 'ping' }], 'no batches'],
  ['another version of JSON-RPC', { jsonrpc: '1.0', method: 'ping' }, 'jsonrpc: expected "2.0"'],
  ['an id that is null', { jsonrpc: '2.0', id: null, method: 'ping' }, 'id: expected'],
  ['an id that is a fraction', { jsonrpc: '2.0', id: 1.5, method: 'ping' }, 'id: expected'],
  ['a text', '"ping"', 'expected a JSON-RPC message'],
] as const)
  protocol(`answers ${name} with the error -32600 and no id`, async () => {
    const { status, json } = await send(body)
    const { id, error } = json as { id: unknown; error: { code: number; message: string } }
    assert.equal([status, id, error.code], [200, null, -32600])
    assert.match(error.message, told)
  })

protocol('accepts notifications and responses without a body', async () => {
  for (const message of [
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 1, result: {} },
  ]) {
    const { status, text } = await send(message)
    assert.equal([status, text], [202, ''])
  }
})

protocol('has no stream of its own and no session to end', async () => {
  for (const method of ['GET', 'DELETE']) {
    const { status, headers } = await api.send(method, url)
    assert.equal([status, headers.get('allow')], [405, 'POST'], method)
  }
})

for (const [name, headers, status, told] of [
  ['an unknown version', { 'MCP-Protocol-Version': '2020-01-01' }, 400, 'Mcp-Protocol-Version: expected'],
  ['a session that is none', { 'Mcp-Session-Id': 'mine' }, 400, 'Mcp-Session-Id: expected'],
  ['an Idempotency-Key', { 'Idempotency-Key': 'k' }, 400, 'Idempotency-Key: expected none'],
  ['a page of an unknown origin', { Origin: 'https://evil.test' }, 403, 'Origin: expected none'],
  ['a page without an origin', { Origin: 'null' }, 403, 'Origin: expected none'],
] as const)
  protocol(`refuses ${name}`, async () => {
    const reply = await send({ jsonrpc: '2.0', id: 1, method: 'ping' }, headers)
    assert.is(reply.status, status)
    assert.match(reply.text, told)
  })

protocol('refuses a page whose name was bound to this address, although its origin is its host', async () => {
  const { port, hostname } = new URL(api.url)
  const rebound = `rebound.test:${port}`
  const headers = { Host: rebound, Origin: `http://${rebound}`, Authorization: `Bearer ${api.key}` }
  const status = await new Promise((resolve, reject) => {
    // `fetch` sends its own `Host`.
    const sent = request({ hostname, port, path: '/mcp', method: 'POST', headers }, (reply) => {
      reply.resume()
      resolve(reply.statusCode)
    })
    sent.on('error', reject)
    sent.end('{"jsonrpc":"2.0","id":1,"method":"ping"}')
  })
  assert.is(status, 403)
})

protocol('is open to sessions of pages that SVC_CORS_ORIGINS names, and not to keys', async () => {
  const preflight = await api.send('OPTIONS', url, {
    headers: { Authorization: '', Origin: PAGE, 'Access-Control-Request-Method': 'POST' },
  })
  assert.is(preflight.status, 204)
  assert.match(preflight.headers.get('access-control-allow-headers') ?? '', 'Mcp-Session-Id')
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  assert.is((await send(ping, { Origin: PAGE })).status, 403)
  const { token } = await newSession(api, { 'run:*': ['read'] })
  const reply = await send(ping, { Origin: PAGE, Authorization: `Bearer ${token}` })
  assert.is(reply.status, 200)
  assert.is(reply.headers.get('access-control-allow-origin'), PAGE)
  assert.match(reply.headers.get('access-control-expose-headers') ?? '', 'Mcp-Session-Id')
})

protocol('requires a credential', async () => {
  const reply = await send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { Authorization: 'Bearer x' })
  assert.is(reply.status, 401)
  assert.is(reply.headers.get('www-authenticate'), 'Bearer')
})

protocol('refuses a body that is too large', async () => {
  assert.is((await send(`"${'x'.repeat(1 << 20)}"`)).status, 413)
})

for (const [name, body] of [
  ['no JSON', '{'],
  ['nested too deeply', '['.repeat(100)],
] as const)
  protocol(`answers a body that is ${name} with the error -32700 and no id`, async () => {
    const { status, json } = await send(body)
    const { id, error } = json as { id: unknown; error: { code: number; message: string } }
    assert.equal([status, id, error.code], [200, null, -32700])
    assert.match(error.message, 'body: expected')
  })

protocol('runs a call once, if its id is used again in the session', async () => {
  const headers = { 'Mcp-Session-Id': newId() }
  const call = { id: 7, method: 'tools/call', params: { name: 'ledger_shop_books', arguments: {} } }
  assert.equal((await rpc(call, headers)).result?.['structuredContent'], { result: 'booked' })
  const again = (await rpc(call, headers)).result
  assert.is(again?.['isError'], true)
  assert.match(JSON.stringify(again), 'id: expected one that this session has not used, got 7')
  assert.equal((await rpc({ ...call, id: '7' }, headers)).result?.['structuredContent'], { result: 'booked' })
})

protocol('cannot cancel a call without its session', async () => {
  const reply = await send({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: 1 },
  })
  assert.is(reply.status, 400)
  assert.match(reply.text, 'Mcp-Session-Id: expected the session of the call to cancel')
})

protocol('lists many tools in pages', async () => {
  const many = Array.from(
    { length: 120 },
    (_, n) => `export const t${n} = fn({ mcp: { service: 'many', description: 'Number ${n}' } }, () => ${n})`,
  )
  await deploy(api, 'many', { 'm.js': `import { fn } from 'svc'\n${many.join('\n')}` })
  const { client } = await connect(api.url, api.key)
  const names: string[] = []
  let cursor: string | undefined
  let pages = 0
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor })
    names.push(...page.tools.map(({ name }) => name))
    cursor = page.nextCursor
    pages++
  } while (cursor !== undefined)
  assert.is(pages, 2)
  assert.is(new Set(names).size, names.length)
  assert.is(names.filter((name) => name.startsWith('many_')).length, 120)
  await client.close()
})

protocol('lists each tool once, if the last one of a page was deployed away', async () => {
  const { client } = await connect(api.url, api.key)
  const first = await client.listTools()
  const gone = first.nextCursor ?? ''
  const [, n = ''] = /^many_m_t(\d+)$/.exec(gone) ?? []
  const left = Array.from({ length: 120 }, (_, each) => each).filter((each) => each !== Number(n))
  const functions = left.map(
    (each) => `export const t${each} = fn({ mcp: { service: 'many', description: 'Number' } }, () => 1)`,
  )
  await deploy(api, 'many', { 'm.js': `import { fn } from 'svc'\n${functions.join('\n')}` })
  const second = await client.listTools({ cursor: gone })
  const names = [...first.tools, ...second.tools].map(({ name }) => name)
  assert.is(new Set(names).size, names.length)
  assert.equal(
    names.filter((name) => name.startsWith('many_') && name !== gone).sort(),
    left.map((each) => `many_m_t${each}`).sort(),
  )
  await client.close()
})

protocol.after(() => server.stop())
protocol.run()
