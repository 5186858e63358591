import { randomBytes } from 'node:crypto'
import * as assert from 'uvu/assert'
import { openEventStoreDb } from '../../src/adapters/eventstoredb/index.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { termsOf } from '../../src/plans/plans.ts'
import { type Embedded, spawnEmbedded } from '../support/backedUp.ts'
import { type Event, publish, type Run } from '../support/build.ts'
import { createTenant } from '../support/createTenant.ts'
import { clockAt } from '../support/clockAt.ts'
import { type StandIn, startStandIn } from '../support/eventstoredb/index.ts'
import { type Api, openApi } from '../support/http.ts'
import { hasEnded } from '../support/hasEnded.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const KEPT_DAYS = termsOf.free.limits.call_retention_days
/** Content above 64 KiB, which is in the blobs. */
const LARGE = 'd'.repeat(100_000)

interface Context {
  readonly nodes: Embedded[]
  readonly standIn: StandIn
  /** Starts the node with its clock beside that of the event store. */
  node(aheadMs: number): Promise<Embedded>
}

const skewed = suite<Context>('a node whose clock is wrong, on an event store whose clock is right', {
  timeoutMs: 90_000,
})

skewed.before.each(async (context) => {
  const standIn = await startStandIn()
  const dataDir = tempDir()
  const SVC_MASTER_KEY = randomBytes(32).toString('base64')
  const nodes: Embedded[] = []
  Object.assign(context, {
    standIn,
    nodes,
    node: async (aheadMs: number) => {
      const started = await spawnEmbedded(dataDir, {
        SVC_EVENT_STORE: standIn.url,
        SVC_MASTER_KEY,
        ...clockAt(Date.now() + aheadMs, true),
      })
      nodes.push(started)
      return started
    },
  } satisfies Context)
})
skewed.after.each(async ({ nodes, standIn }) => {
  for (const node of nodes) if (!hasEnded(node.process)) await node.stop()
  await standIn.stop()
})

const keyed = async (api: Api, key: string) => {
  const { status, headers, json } = await api.send('POST', '/events', {
    body: { event_type: 'keyed', event_data: 1 },
    headers: { 'Idempotency-Key': key },
  })
  assert.is(status, 201)
  const { event_id } = (json as { data: Event }).data
  return { event_id, replayed: headers.get('idempotency-replayed') === 'true' }
}

for (const [which, first, second] of [
  ['second', 0, 25 * HOUR_MS],
  ['first', -25 * HOUR_MS, 0],
] as const)
  skewed(
    `replays a keyed request for a day when the clock of the ${which} node is wrong`,
    async ({ node }) => {
      const key = newId()
      const one = await node(first)
      const sent = await keyed(one.api, key)
      await one.stop()
      const other = await node(second)
      assert.equal(await keyed(other.api, key), { event_id: sent.event_id, replayed: true })
      await other.stop()
    },
  )

skewed('expires nothing that the plan keeps', async ({ node, standIn }) => {
  const right = await node(0)
  const { env_id, token } = await createTenant(right.cliEnv, { org: 'acme', plan: 'free' })
  const { event_id } = await publish(openApi(right.url, token), 'large', LARGE)
  const today = new Date().toISOString().slice(0, 10)
  await right.stop()

  const ahead = await node((KEPT_DAYS + 2) * DAY_MS)
  const store = await openEventStoreDb(standIn.url)
  try {
    const expired = await until(
      async () => {
        for await (const { event } of store.read(streamOf.calls(env_id)))
          if (event.type === 'CallsExpired') return event
        return undefined
      },
      { timeoutMs: 60_000 },
    )
    assert.ok(expired.before < today, `calls before ${expired.before} have expired`)
    await ahead.stop()
    const again = await node(0)
    const api = openApi(again.url, token)
    const { data } = await api.page<Run>(`/events?event_type=large`)
    assert.equal(
      data.map((event) => event.event_id),
      [event_id],
    )
    assert.is((await api.get<Event>(`/events/${event_id}`)).event_data, LARGE)
    await again.stop()
  } finally {
    await store.close()
  }
})

skewed.run()
