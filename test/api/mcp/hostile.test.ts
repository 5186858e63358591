import * as assert from 'uvu/assert'
import { readConfig } from '../../../src/process/config.ts'
import { openSecrets } from '../../../src/process/secretsFile.ts'
import { call, deploy, type Run } from '../../support/build.ts'
import { openApi } from '../../support/http.ts'
import { installation } from '../../support/installation.ts'
import { plantOrg } from '../../support/plantOrg.ts'
import { startServer } from '../../support/server.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import { callTool, connect, textOf, TOOLS } from './client.ts'

/** Ends a line or a message, clears a terminal, turns the direction of a text, or is half of a character. */
const HOSTILE = 'a\r\n\r\ndata: x\u0000\u001b[2J\u2028\u202e\ud800</script>'

const dataDir = tempDir()
const [free] = await plantOrg(dataDir, 'free', [])
const server = await startServer({ dataDir, env: { SVC_WEBHOOK_TIMEOUT_MS: '300000' } }) // calls wait for the test
const { api } = server
await deploy(api, 'shop', {
  ...TOOLS,
  'odd.js': `
import { setTimeout } from 'node:timers/promises'
import { emit, files, fn, run, send } from 'svc'
const text = ${JSON.stringify(HOSTILE)}
export const fails = fn({ mcp: { service: 'odd', description: 'Fails' } }, async () => {
  throw new Error(text)
})
export const failsLong = () => {
  throw new Error('\u4e2d'.repeat(20_000))
}
export const failsOften = () => Promise.allSettled(Array.from({ length: 99 }, () => run('odd/failsLong'))).then(() => null)
export const returns = fn({ mcp: { service: 'odd', description: 'Returns' } }, async () => {
  await emit('text', text)
  return { [text]: text }
})
export const sends = (size) => send('order:placed', { text: 'x'.repeat(size) })
export const asks = fn({ mcp: { service: 'odd', description: 'Asks' } }, async () => {
  while ((await files.list({ prefix: 'odd' })).length === 0) await setTimeout(10)
  return 'answered'
})
`,
})
const operator = openApi(server.url, openSecrets(readConfig(installation(dataDir))).operatorToken)
const { client } = await connect(api.url, api.key)

const hostile = suite('MCP with hostile texts, large data and refusals', { timeoutMs: 60_000 })

const refusalOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
  } catch (error) {
    return (error as Error).message
  }
  return assert.unreachable('it was not refused') as never
}

hostile('texts with control characters arrive as they are, and end no message early', async () => {
  const messages: (string | undefined)[] = []
  const result = await client.callTool({ name: 'odd_odd_returns', arguments: {} }, undefined, {
    onprogress: ({ message }) => messages.push(message),
  })
  assert.equal(messages, [`text: ${HOSTILE.toWellFormed()}`])
  assert.equal(result.structuredContent, { [HOSTILE]: HOSTILE })
  const failed = await callTool(client, 'odd_odd_fails')
  assert.is(failed.isError, true)
  assert.match(textOf(failed), 'data: x')
  const [run] = (await api.page<Run>('/runs?fn=odd%2Ffails')).data
  const why = await callTool(client, 'why', { run_id: run?.run_id })
  assert.match(textOf(why), 'fails')
})

hostile('names with control characters in arguments are refused with the text of the mistake', async () => {
  for (const [tool, args] of [
    ['get_run', { run_id: HOSTILE }],
    ['why', { run_id: HOSTILE }],
    ['deploy_status', { project: HOSTILE }],
    ['list_functions', { project: HOSTILE }],
    ['list_runs', { status: HOSTILE }],
  ] as const) {
    const called = await callTool(client, tool, args)
    assert.is(called.isError, true, tool)
    assert.not.match(textOf(called), '\u001b', tool)
    assert.not.match(textOf(called), '\n', tool)
  }
})

hostile('events of 5 MB are found without their data, and so is the run that received one', async () => {
  const { status } = await call(api, 'odd/sends', 5 << 20)
  assert.is(status, 'succeeded')
  const run = await until(async () => (await api.page<Run>('/runs?fn=shop%2Fplaced')).data[0])
  const found = await callTool(client, 'search_events', { event_type: 'order:placed', limit: 5 })
  assert.is(found.isError, undefined, textOf(found).slice(0, 200))
  assert.match(textOf(found), run.event_id ?? '')
  assert.ok(textOf(found).length < 10_000)
  const got = await callTool(client, 'get_run', { run_id: run.run_id })
  assert.is(got.isError, undefined, textOf(got).slice(0, 200))
  assert.ok(textOf(got).length < 20_000)
})

hostile(
  'a run around which a hundred others have long errors is returned, with the beginning of each error',
  async () => {
    const { run_id, status } = await call(api, 'odd/failsOften')
    assert.is(status, 'succeeded')
    const got = await callTool(client, 'get_run', { run_id })
    assert.is(got.isError, undefined, textOf(got).slice(0, 200))
    const { nodes } = (got.structuredContent ?? {})['trace'] as { nodes: number }
    assert.ok(nodes > 50, `${nodes} nodes`)
    assert.match(textOf(got), `${'\u4e2d'.repeat(150)}`)
    assert.ok(textOf(got).length < 200_000)
  },
)

hostile('an event that is too large to send is refused with its limit', async () => {
  const refusal = await refusalOf(
    callTool(client, 'send_event', { event_type: 'too:large', event_data: 'x'.repeat(2 << 20) }),
  )
  assert.match(refusal, 'payload_too_large')
  assert.match(refusal, '1048576')
})

hostile('a client reads why its credential is refused, and why it must wait', async () => {
  const wrong = await refusalOf(connect(api.url, 'wrong'))
  assert.match(wrong, 'Expected a valid credential')
  const limited = await connect(api.url, free?.key ?? '')
  const pings = await Promise.allSettled(Array.from({ length: 50 }, () => limited.client.ping()))
  const refused = pings.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []))
  assert.ok(refused.length > 0)
  for (const message of refused) assert.match(message, 'rate_limit_exceeded')
  await until(() => limited.client.ping().catch(() => false))
  await limited.client.close()
})

hostile('a key that loses the permission during a call gets no further call', async () => {
  const { env_id } = await api.get<{ env_id: string }>('/env')
  const key = await operator.post<{ api_key_id: string; token: string }>(
    `${server.url}/operator/envs/${env_id}/api-keys`,
    { name: 'agents', permissions: { 'mcp:odd': ['execute'] } },
  )
  const agent = await connect(api.url, key.token)
  const call = callTool(agent.client, 'odd_odd_asks')
  await until(async () => (await api.page<Run>('/runs?status=running&fn=odd%2Fasks')).data[0])
  await operator.patch(`${server.url}/operator/api-keys/${key.api_key_id}`, {
    permissions: { 'mcp:ledger': ['execute'] },
  })
  await api.send('PUT', '/files/upload/odd', { body: 'yes' })
  assert.equal((await call).structuredContent, { result: 'answered' }, 'the call was permitted when it began')
  assert.match(await refusalOf(callTool(agent.client, 'odd_odd_asks')), 'no tool "odd_odd_asks"')
  assert.equal(
    (await agent.client.listTools()).tools.map(({ name }) => name),
    ['docs_search', 'ledger_shop_books'],
  )
  await agent.client.close()
})

hostile.after(async () => {
  await client.close()
  await server.stop()
})
hostile.run()
