import * as assert from 'uvu/assert'
import { readConfig } from '../../../src/process/config.ts'
import { openSecrets } from '../../../src/process/secretsFile.ts'
import { deploy, type Run } from '../../support/build.ts'
import { parseExposition } from '../../support/exposition.ts'
import { openApi } from '../../support/http.ts'
import { installation } from '../../support/installation.ts'
import { plantOrg } from '../../support/plantOrg.ts'
import { startServer } from '../../support/server.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import { newServiceKey, newSession } from '../issuing.ts'
import { TOOLS } from './client.ts'

const dataDir = tempDir()
const [free] = await plantOrg(dataDir, 'free', [])
const server = await startServer({ dataDir, env: { SVC_WEBHOOK_TIMEOUT_MS: '300000' } }) // calls wait for the test
const { api } = server
await deploy(api, 'shop', TOOLS)
const operator = openApi(server.url, openSecrets(readConfig(installation(dataDir))).operatorToken)

const openStreams = async (): Promise<number> =>
  parseExposition((await operator.send('GET', `${server.url}/metrics`)).text).sum('svc_sse_clients')

/** A call that is answered with a stream, which has begun. */
const callAsking = async (key: string, path: string) => {
  const left = new AbortController()
  const params = { name: 'shop_shop_asks', arguments: { path }, _meta: { progressToken: 1 } }
  const reply = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, Accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    signal: left.signal,
  })
  assert.match(reply.headers.get('content-type') ?? '', 'text/event-stream')
  const run = await until(async () => (await api.page<Run>('/runs?status=running&fn=shop%2Fasks')).data[0])
  return { reply, run, leave: () => left.abort() }
}

const answer = (path: string) =>
  api.send('PUT', `/files/upload/${path}`, { body: 'yes', headers: { 'Content-Type': 'text/plain' } })
const hasSucceeded = (run_id: string) =>
  until(async () => (await api.get<Run>(`/runs/${run_id}`)).status === 'succeeded')

const limits = suite('the limits of POST /mcp', { timeoutMs: 60_000 })

limits('count each message as a request of the organization', async () => {
  const limited = openApi(server.url, free?.key ?? '')
  const ping = () =>
    limited.send('POST', `${server.url}/mcp`, { body: { jsonrpc: '2.0', id: 1, method: 'ping' } })
  const replies = await Promise.all(Array.from({ length: 50 }, ping))
  const refused = replies.filter(({ status }) => status === 429)
  assert.ok(refused.length > 0)
  for (const { json, headers } of refused) {
    assert.is((json as { error: { code: string } }).error.code, 'rate_limit_exceeded')
    assert.ok(headers.has('retry-after'))
  }
  await until(async () => (await ping()).status === 200)
})

limits('end the stream of a client that has left, and not its run', async () => {
  const { run, reply, leave } = await callAsking(api.key, 'left.txt')
  assert.is(await openStreams(), 1)
  leave()
  await reply.text().catch(() => {})
  await until(async () => (await openStreams()) === 0)
  assert.is((await api.get<Run>(`/runs/${run.run_id}`)).status, 'running')
  await answer('left.txt')
  await hasSucceeded(run.run_id)
})

limits('end the stream of a key that was revoked, and not its run', async () => {
  const { token, service_key_id } = await newServiceKey(api, { 'mcp:shop': ['execute'] })
  const { run, reply } = await callAsking(token, 'revoked.txt')
  await api.remove(`/service-keys/${service_key_id}`)
  assert.not.match(await reply.text(), '"result"')
  await until(async () => (await openStreams()) === 0)
  await answer('revoked.txt')
  await hasSucceeded(run.run_id)
})

limits('end the stream of a session whose API key may no longer call the service', async () => {
  const { env_id } = await api.get<{ env_id: string }>('/env')
  const key = await operator.post<{ api_key_id: string; token: string }>(
    `${server.url}/operator/envs/${env_id}/api-keys`,
    { name: 'agents', permissions: { 'mcp:*': ['execute'], 'session:*': ['create'] } },
  )
  const { token } = await newSession(openApi(server.url, key.token), { 'mcp:shop': ['execute'] })
  const { run, reply } = await callAsking(token, 'smaller.txt')
  await operator.patch(`${server.url}/operator/api-keys/${key.api_key_id}`, {
    permissions: { 'mcp:ledger': ['execute'] },
  })
  assert.not.match(await reply.text(), '"result"')
  await until(async () => (await openStreams()) === 0)
  await answer('smaller.txt')
  await hasSucceeded(run.run_id)
})

limits.after(() => server.stop())
limits.run()
