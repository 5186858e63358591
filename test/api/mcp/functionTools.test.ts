import * as assert from 'uvu/assert'
import { deploy, type Run } from '../../support/build.ts'
import { startWithOther } from '../../support/server.ts'
import { toolsAfter } from '../../../src/api/mcp/functionTools.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { newServiceKey } from '../issuing.ts'
import { callTool, connect, textOf, TOOLS } from './client.ts'

const server = await startWithOther()
const { api, other } = server
await deploy(api, 'shop', TOOLS)
const { client, transport } = await connect(api.url, api.key)

const runOf = (run_id: unknown): Promise<Run> => api.get<Run>(`/runs/${String(run_id)}`)

const tools = suite('functions as tools of MCP', { timeoutMs: 60_000 })

tools('are listed with their description and schema', async () => {
  const { tools: listed } = await client.listTools()
  const refund = listed.find(({ name }) => name === 'shop_shop_refund')
  assert.is(refund?.description, 'Refunds an order')
  assert.equal(refund?.inputSchema.required, ['order'])
  assert.is(refund?.inputSchema['additionalProperties'], false)
  const books = listed.find(({ name }) => name === 'ledger_shop_books')
  assert.equal(books?.inputSchema, { type: 'object' })
  assert.not(listed.some(({ name }) => name.includes('placed')))
  for (const { name } of listed) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
})

tools('are listed for clients that expect each property to be an object', async () => {
  await deploy(api, 'booleans', {
    'any.js': `import { fn } from 'svc'
const nested = { type: 'object', properties: { on: true }, additionalProperties: false }
const input = { type: 'object', properties: { a: true, b: false, nested }, additionalProperties: false }
export const any = fn({ mcp: { service: 'any', description: 'Any', input } }, (given) => given)`,
  })
  const { tools: listed } = await client.listTools()
  assert.equal(listed.find(({ name }) => name === 'any_any_any')?.inputSchema, {
    type: 'object',
    properties: {
      a: {},
      b: { not: {} },
      nested: { type: 'object', properties: { on: true }, additionalProperties: false },
    },
    additionalProperties: false,
  })
  const given = { a: 1, nested: { on: [] } }
  assert.equal((await callTool(client, 'any_any_any', given)).structuredContent, given)
  assert.is(textOf(await callTool(client, 'any_any_any', { b: 1 })), 'b: expected no value, got 1')
  await api.remove('/projects/booleans')
})

tools('run the function with the arguments, and return its result as structured content', async () => {
  const called = await callTool(client, 'shop_shop_refund', { order: 'o1', cents: 5 })
  assert.equal(called.structuredContent, { refunded: { order: 'o1', cents: 5 } })
  assert.equal(JSON.parse(textOf(called)), called.structuredContent)
  const run = await runOf(called._meta?.['svc/run_id'])
  assert.equal([run.fn, run.status, run.run_type], ['shop/refund', 'succeeded', 'call'])
})

tools('return a result that is no object as the field result', async () => {
  const called = await callTool(client, 'ledger_shop_books')
  assert.equal(called.structuredContent, { result: 'booked' })
  assert.is(textOf(called), 'booked')
})

tools('start no run for arguments that do not match the schema', async () => {
  const before = await api.page<Run>('/runs?fn=shop%2Frefund&limit=1')
  for (const [args, message] of [
    [{}, 'order: is required'],
    [{ order: 5 }, 'order: expected a string, got 5'],
    [{ order: 'a', cents: 0 }, 'cents: expected at least 1, got 0'],
    [{ order: 'a', other: 1 }, 'other: unknown field; expected order, cents'],
  ] as const) {
    const called = await callTool(client, 'shop_shop_refund', args)
    assert.equal([called.isError, textOf(called)], [true, message])
  }
  const after = await api.page<Run>('/runs?fn=shop%2Frefund&limit=1')
  assert.is(after.pagination.total, before.pagination.total)
})

tools('return a failure with the message, the place in the source and the page of the run', async () => {
  const called = await callTool(client, 'shop_shop_fails')
  assert.is(called.isError, true)
  assert.match(textOf(called), 'Sold out')
  const line = TOOLS['shop.js'].split('\n').findIndex((each) => each.includes('throw new TypeError')) + 1
  assert.match(textOf(called), `at shop.js:${line}:`)
  assert.match(textOf(called), "throw new TypeError('Sold out')")
  const run = await runOf(called._meta?.['svc/run_id'])
  assert.is(run.status, 'failed')
  assert.match(textOf(called), `/ui/runs/${run.run_id}`)
})

tools('report emitted data as progress, before the result', async () => {
  const messages: (string | undefined)[] = []
  const result = await client.callTool({ name: 'shop_shop_count', arguments: { to: 3 } }, undefined, {
    onprogress: ({ progress, message }) => messages.push(`${progress} ${message}`),
  })
  assert.equal(messages, ['1 number: {"n":1}', '2 number: {"n":2}', '3 number: {"n":3}'])
  assert.equal(result.structuredContent, { result: 3 })
})

tools('report emitted data while the run still waits for an answer to it', async () => {
  const answers: Promise<unknown>[] = []
  const onprogress = ({ message }: { message?: string | undefined }) => {
    assert.is(message, 'question: go.txt')
    answers.push(
      api.send('PUT', '/files/upload/go.txt', { body: 'go', headers: { 'Content-Type': 'text/plain' } }),
    )
  }
  const params = { name: 'shop_shop_asks', arguments: { path: 'go.txt' } }
  const { structuredContent } = await client.callTool(params, undefined, { onprogress })
  assert.equal([structuredContent, answers.length], [{ result: 'answered' }, 1])
  await Promise.all(answers)
})

tools('report each of many emitted data before the result', async () => {
  let messages = 0
  await client.callTool({ name: 'shop_shop_burst', arguments: { of: 400 } }, undefined, {
    onprogress: () => messages++,
  })
  assert.is(messages, 400)
})

tools('are not answered with a stream for a call without a progress token', async () => {
  assert.equal((await callTool(client, 'shop_shop_count', { to: 2 })).structuredContent, { result: 2 })
})

tools('return a large result, and refer to one that no model could read', async () => {
  const large = await callTool(client, 'shop_shop_large', { size: 200_000 })
  assert.equal(large.structuredContent, { text: 'x'.repeat(200_000) })
  const huge = await callTool(client, 'shop_shop_large', { size: 2_000_000 })
  assert.is(huge.isError, true)
  assert.match(textOf(huge), /its result has 2000011 bytes, more than 1048576: read it with GET \/v1\/runs\//)
})

tools('are cancelled by their client, with the run', async () => {
  const stop = new AbortController()
  const call = client.callTool({ name: 'shop_shop_waits', arguments: {} }, undefined, { signal: stop.signal })
  call.catch(() => {})
  const run = await until(async () => (await api.page<Run>('/runs?status=running&fn=shop%2Fwaits')).data[0])
  stop.abort()
  await until(async () => (await runOf(run.run_id)).status === 'cancelled')
})

tools('are not cancelled by another credential that knows the session and the id', async () => {
  const { token } = await newServiceKey(api, { 'mcp:*': ['execute'] })
  const session = transport.sessionId ?? ''
  const headers = { 'Mcp-Session-Id': session, 'Content-Type': 'application/json' }
  const rpc = (key: string, message: object) =>
    fetch(`${api.url}/mcp`, {
      method: 'POST',
      headers: { ...headers, Authorization: `Bearer ${key}` },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    })
  const params = { name: 'shop_shop_waits', arguments: {} }
  const reply = rpc(api.key, { id: 'mine', method: 'tools/call', params })
  const run = await until(async () => (await api.page<Run>('/runs?status=running&fn=shop%2Fwaits')).data[0])
  const cancelled = { method: 'notifications/cancelled', params: { requestId: 'mine' } }
  assert.is((await rpc(token, cancelled)).status, 202)
  assert.is((await runOf(run.run_id)).status, 'running')
  assert.is((await rpc(api.key, cancelled)).status, 202)
  const { result } = (await (await reply).json()) as { result: { isError: boolean } }
  assert.is(result.isError, true)
  assert.is((await runOf(run.run_id)).status, 'cancelled')
})

tools('are limited to the services of the credential', async () => {
  const { token } = await newServiceKey(api, { 'mcp:ledger': ['execute'] })
  const limited = await connect(api.url, token)
  const { tools: listed } = await limited.client.listTools()
  assert.equal(
    listed.map(({ name }) => name),
    ['docs_search', 'ledger_shop_books'],
  )
  assert.is(textOf(await callTool(limited.client, 'ledger_shop_books')), 'booked')
  try {
    await callTool(limited.client, 'shop_shop_refund', { order: 'a' })
    assert.unreachable('a tool of another service was called')
  } catch (error) {
    assert.match((error as Error).message, 'no tool "shop_shop_refund"')
  }
  await limited.client.close()
})

tools('belong to one environment', async () => {
  const foreign = await connect(other.url, other.key)
  const { tools: listed } = await foreign.client.listTools()
  assert.not(listed.some(({ name }) => name.startsWith('shop_')))
  await foreign.client.close()
})

tools('keep their names when a newer project has the same tool', async () => {
  await deploy(api, 'second', {
    'shop.js': `import { fn } from 'svc'
      export const books = fn({ mcp: { service: 'ledger', description: 'Other' } }, () => 'other')`,
  })
  const { tools: listed } = await client.listTools()
  const names = listed.map(({ name }) => name).filter((name) => name.startsWith('ledger_'))
  assert.is(names.length, 2)
  assert.is(textOf(await callTool(client, 'ledger_shop_books')), 'booked')
  const [beside = ''] = names.filter((name) => name !== 'ledger_shop_books')
  assert.match(beside, /^ledger_shop_books_[0-9a-f]{8}$/)
  assert.is(textOf(await callTool(client, beside)), 'other')
})

tools.after(async () => {
  await client.close()
  await server.stop()
})
tools('are read one page at a time, however many an environment has', () => {
  const names = Array.from({ length: 40_000 }, (_, n) => `tool-${String(n).padStart(5, '0')}`)
  const tools = new Map(names.map((name) => [name, { fn: {} }]))
  let asked = 0
  const permissions = { allows: () => ++asked > 0 }
  const page = toolsAfter(
    { views: { directory: { toolsOf: () => tools } } } as never,
    { env_id: 'env', permissions } as never,
    'tool-20000',
  ).take(101)
  assert.is([...page][0]?.[0], 'tool-20001')
  assert.is(asked, 101)
})

tools.run()
