import { setTimeout as delay } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { deploy, type Event, type Run, type Webhook } from '../support/build.ts'
import { type Loss, type StandInCluster, startStandInCluster } from '../support/eventstoredb/cluster.ts'
import { allOf } from '../support/exactRuns.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { unhandledDuring } from '../support/unhandled.ts'
import { until } from '../support/until.ts'

const PATIENT = { timeoutMs: 60_000, everyMs: 100 }
const SVC_MASTER_KEY = Buffer.alloc(32, 7).toString('base64')

const JOBS = `
import { fn, context, send } from 'svc'
export const onWork = fn({ 'on-event': 'work' }, ({ data }) => data)
export const hook = fn({ webhook: { service: 'shop', path: '/order', auth: 'none' } }, async () => {
  await send('ordered', {})
  return { status: 202 }
})
`

interface Context {
  cluster: StandInCluster
  server: TestServer
}

const failover = suite<Context>('a service while its event store fails over', { timeoutMs: 240_000 })

failover.before(async (context) => {
  context.cluster = await startStandInCluster()
  context.server = await startServer({ env: { SVC_EVENT_STORE: context.cluster.url, SVC_MASTER_KEY } })
  await deploy(context.server.api, 'shop', { 'jobs.js': JOBS })
})
failover.after(async ({ cluster, server }) => {
  await server.stop()
  await cluster.stop()
})

/** Publishes events and calls the webhook until `over`. Resolves with the ids of the acknowledged events. */
const underLoad = async (
  { api, url }: TestServer,
  webhook: Webhook | undefined,
  over: AbortSignal,
): Promise<Set<string>> => {
  const acknowledged = new Set<string>()
  /** A stream that exists: its events reach a worker through the consumer group. */
  let stream_id: string | undefined
  const publisher = async (continues: boolean) => {
    while (!over.aborted) {
      const { status, headers, json, text } = await api.send('POST', '/events', {
        body: { event_type: 'work', event_data: 1, ...(continues && stream_id && { stream_id }) },
      })
      const event = (json as { data?: Event }).data
      if (status === 201 && event) {
        acknowledged.add(event.event_id)
        stream_id ??= event.stream_id
      } else assert.ok(status === 503 && headers.has('retry-after'), `published: ${status} ${text}`)
      await delay(20)
    }
  }
  const sender = async () => {
    while (!over.aborted) {
      const reply = await fetch(new URL(new URL(webhook?.url ?? '').pathname, url), { method: 'POST' })
      const text = await reply.text()
      assert.ok(
        reply.status === 202 || (reply.status === 503 && reply.headers.has('retry-after')),
        `webhook: ${reply.status} ${text}`,
      )
      await delay(20)
    }
  }
  await Promise.all([publisher(true), publisher(false), sender()])
  return acknowledged
}

const isReady = async ({ url }: TestServer) => (await fetch(`${url}/readyz`)).status === 200

const survives =
  (...losses: readonly Loss[]) =>
  async ({ cluster, server }: Context): Promise<void> => {
    const { api } = server
    let acknowledged = new Set<string>()
    const [webhook] = (await api.page<Webhook>('/projects/shop/webhooks')).data
    const unhandled = await unhandledDuring(async () => {
      const over = new AbortController()
      const load = underLoad(server, webhook, over.signal)
      load.catch(() => over.abort()) // its failure is reported below
      const { leader, nodes } = cluster
      const [gone, other] = [leader, nodes.find((node) => node !== leader)]
      for (const [i, loss] of losses.entries()) await cluster.lose((i === 0 ? gone : other) ?? nodes[0], loss)
      if (losses.length > 1) await delay(2000) // without a quorum
      for (const node of [gone, other].slice(0, losses.length)) if (node) await cluster.back(node)
      await until(
        async () => (await isReady(server)) && (await api.send('GET', '/runs')).status === 200,
        PATIENT,
      )
      await delay(1000)
      over.abort()
      acknowledged = await load
    })
    assert.equal(unhandled, [])
    assert.ok(acknowledged.size > 0)
    await until(async () => {
      const runs = await allOf<Run>(api, '/runs?type=event')
      const succeeded = runs
        .filter(({ status }) => status === 'succeeded')
        .map(({ event_id }) => event_id ?? '')
      assert.equal(
        [...acknowledged].filter((id) => !succeeded.includes(id)),
        [],
      )
      return true
    }, PATIENT)
  }

failover('a leader that is killed costs no event', survives('killed'))
failover('a leader that is ended costs no event', survives('ended'))
failover('a leader that is paused costs no event', survives('paused'))
failover('a cluster without a quorum costs no event', survives('killed', 'ended'))

failover.run()
