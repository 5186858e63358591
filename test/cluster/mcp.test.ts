import * as assert from 'uvu/assert'
import { callTool, connect, TOOLS } from '../api/mcp/client.ts'
import { deploy, type Run } from '../support/build.ts'
import { isNamed } from '../support/engines.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { openApi } from '../support/http.ts'
import { realEngines } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const nodes = suite('MCP on several nodes', { timeoutMs: 120_000 })
const isHere = isNamed('mongodb') && isNamed('s3')
const test = (name: string, work: () => Promise<void>) => (isHere ? nodes(name, work) : nodes.skip(name))

test('a call that one node serves is cancelled through another one', async () => {
  const standIn = isNamed('eventStore') ? null : await startStandIn()
  const env = { ...realEngines(tempDir()), ...(standIn && { SVC_EVENT_STORE: standIn.url }) }
  const first = await startServer({ env })
  const second = await startServer({ env })
  await deploy(first.api, 'shop', TOOLS)
  const { client, transport } = await connect(first.url, first.api.key)
  const params = { name: 'shop_shop_waits', arguments: {}, _meta: { progressToken: 'p' } }
  // The session and the id of the request name the call, as the client of the SDK would send them.
  const id = 'over there'
  const headers = {
    Authorization: `Bearer ${first.api.key}`,
    Accept: 'application/json, text/event-stream',
    'Mcp-Session-Id': transport.sessionId ?? '',
  }
  const rpc = (url: string, message: object) =>
    fetch(`${url}/mcp`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    })
  const called = rpc(first.url, { id, method: 'tools/call', params }).then((reply) => reply.text())
  const run = await until(
    async () => (await first.api.page<Run>('/runs?status=running&fn=shop%2Fwaits')).data[0],
  )
  const cancelled = { method: 'notifications/cancelled', params: { requestId: id } }
  assert.is((await rpc(second.url, cancelled)).status, 202)
  assert.match(await called, `The run ${run.run_id} was cancelled`)
  const other = openApi(second.url, second.api.key)
  await until(async () => (await other.get<Run>(`/runs/${run.run_id}`)).status === 'cancelled')

  const there = await connect(second.url, first.api.key)
  assert.equal((await callTool(there.client, 'ledger_shop_books')).structuredContent, { result: 'booked' })
  await there.client.close()
  await client.close()
  await second.stop()
  await first.stop()
  await standIn?.stop()
})

nodes.run()
