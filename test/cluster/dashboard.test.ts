import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { Schedule } from '../../src/api/schemas.ts'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { connect, TOOLS } from '../api/mcp/client.ts'
import { deploy, type Run } from '../support/build.ts'
import { openVisitor, signedIn } from '../support/dashboard.ts'
import { engineUrl, namedUrl, reportExercised } from '../support/engines.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { installation, realEngines } from '../support/installation.ts'
import { notHere } from '../support/notHere.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const SCHEDULES = `import { fn } from 'svc'
export const each = fn({ schedule: '* * * * * *' }, () => 1)
export const other = fn({ schedule: '* * * * * *' }, () => 1)`

interface Context {
  /** Every role, on the same engines. */
  readonly first: TestServer
  readonly second: TestServer
  readonly operatorToken: string
  readonly stop: () => Promise<unknown>
}

const openNodes = async (): Promise<Context> => {
  const standIn = engineUrl('eventStore') === null ? await startStandIn() : null
  if (standIn) reportExercised('EventStoreDB stand-in')
  engineUrl('redis')
  const env = {
    ...realEngines(tempDir(), namedUrl),
    ...(standIn && { SVC_EVENT_STORE: standIn.url }),
  }
  const first = await startServer({ env })
  const second = await startServer({ env })
  return {
    first,
    second,
    operatorToken: openSecrets(readConfig(installation(first.dataDir, env))).operatorToken,
    stop: () => Promise.all([first.stop(), second.stop()]).finally(() => standIn?.stop()),
  }
}

const title = 'the dashboard on two nodes'
if (engineUrl('mongodb') === null || engineUrl('s3') === null) {
  notHere(title, 'they need SVC_TEST_MONGODB and SVC_TEST_S3')
} else {
  const nodes = suite<Context>(title, { timeoutMs: 120_000 })
  nodes.before(async (context) => void Object.assign(context, await openNodes()))
  nodes.after(({ stop }) => stop())

  nodes('refuses a copied cookie of the operator at once after a sign-out', async (context) => {
    const { first, second, operatorToken } = context
    const visitor = await signedIn(first.url, operatorToken, '/operator/sign-in')
    const copies = [first, second].map(({ url }) => openVisitor(url, visitor.cookie))
    for (const copy of copies) assert.is((await copy.send('GET', '/operator/orgs')).status, 200)
    assert.is((await visitor.send('DELETE', '/operator/sign-in')).status, 204)
    for (const copy of copies.toReversed()) assert.is((await copy.send('GET', '/operator/orgs')).status, 401)
  })

  nodes('redeems a ticket once, whichever node is asked', async ({ first, second }) => {
    for (let round = 0; round < 5; round++) {
      const { ticket } = await first.api.post<{ ticket: string }>('/sign-in/tickets')
      const replies = await Promise.all(
        [first, second, first, second].map(({ url }) =>
          openVisitor(url).send('POST', '/v1/sign-in', { body: { ticket } }),
        ),
      )
      assert.equal(replies.map(({ status }) => status).toSorted(), [200, 401, 401, 401])
    }
  })

  nodes('pauses a schedule for both nodes', async ({ first, second }) => {
    await deploy(first.api, 'ticks', { 'jobs.js': SCHEDULES })
    const ticksOf = async (name: string): Promise<number[]> =>
      (await second.api.page<Run>(`/runs?project=ticks&fn=jobs%2F${name}&limit=100`)).data.map(
        ({ requested_at }) => Date.parse(requested_at),
      )
    const tickAfter = (name: string, ms: number) =>
      until(async () => (await ticksOf(name)).some((tick) => tick > ms), { timeoutMs: 30_000 })
    const change = async ({ api }: TestServer, name: string, action: 'pause' | 'resume') => {
      const { data } = await api.page<Static<typeof Schedule>>('/projects/ticks/schedules')
      const found = data.find((each) => each.var === name)
      await api.post(`/projects/ticks/schedules/${found?.schedule_id}/${action}`)
    }
    for (const [by, over] of [
      [first, second],
      [second, first],
    ] as const) {
      await tickAfter('each', Date.now())
      await change(by, 'each', 'pause')
      const from = Date.now()
      await tickAfter('other', from + 1000)
      const to = Date.now()
      await change(over, 'each', 'resume')
      await tickAfter('each', to)
      assert.equal(
        (await ticksOf('each')).filter((tick) => tick > from && tick <= to),
        [],
      )
    }
    for (const name of ['each', 'other']) await change(first, name, 'pause')
  })

  nodes('cancels a call of MCP over another node than it was made on', async ({ first, second }) => {
    await deploy(first.api, 'shop', TOOLS)
    const { client, transport } = await connect(first.url, first.api.key)
    const send = ({ url, api }: TestServer, message: object) =>
      fetch(`${url}/mcp`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${api.key}`,
          'Content-Type': 'application/json',
          'Mcp-Session-Id': transport.sessionId ?? '',
        },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      })
    const call = send(first, {
      id: 7,
      method: 'tools/call',
      params: { name: 'shop_shop_waits', arguments: {} },
    })
    const running = await until(
      async () => (await second.api.page<Run>('/runs?status=running&fn=shop%2Fwaits')).data[0],
    )
    const cancelled = await send(second, { method: 'notifications/cancelled', params: { requestId: 7 } })
    await cancelled.text()
    assert.is(cancelled.status, 202)
    const { result } = (await (await call).json()) as { result: { isError: boolean } }
    assert.is(result.isError, true)
    assert.is((await first.api.get<Run>(`/runs/${running.run_id}`)).status, 'cancelled')
    await client.close()
  })
  nodes.run()
}
