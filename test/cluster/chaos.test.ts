import { spawnSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig, type Role } from '../../src/process/config.ts'
import { follow, type Sent } from '../api/sse.ts'
import { deploy, type Event, publish, type Run } from '../support/build.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { engineUrl, reportExercised } from '../support/engines.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { allOf, isExact, isLost, WORK } from '../support/exactRuns.ts'
import { openApi } from '../support/http.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const roles = suite('SVC_ROLES')

roles('that leave out some need engines that other nodes can share', () => {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const { status, stderr } = spawnSync(process.execPath, [main], {
    env: { SVC_DATA_DIR: tempDir(), SVC_ROLES: 'api', PORT: '0' },
    encoding: 'utf8',
    timeout: 20_000,
  })
  assert.is(status, 1)
  assert.match(stderr, /SVC_ROLES: .*SVC_EVENT_STORE, SVC_READ_MODELS and SVC_BLOBS/)
})

roles.run()

const TICKS = `
import { fn } from 'svc'
export const minutely = fn({ schedule: '* * * * *' }, tick => tick.data.scheduled_time)
`

/** Publishes until told to stop; resolves with what was acknowledged. */
const publisher = async (cluster: Cluster, api: ReturnType<typeof openApi>, over: AbortSignal) => {
  const acknowledged: Event[] = []
  while (!over.aborted) {
    try {
      acknowledged.push(await publish(api, 'work', Math.random() * 300))
      await delay(100) // a read-model server that scans must keep up
    } catch {
      await until(() => cluster.nodes('api').length > 0) // what was not acknowledged may have been stored or not
    }
  }
  return acknowledged
}

/** Follows the environment and comes back with the last id whenever the stream ends, as an EventSource does. */
const followAlways = async (api: ReturnType<typeof openApi>, over: AbortSignal): Promise<Sent[]> => {
  const seen: Sent[] = []
  while (!over.aborted) {
    const lastId = seen.at(-1)?.id
    const stream = await follow(
      api,
      '/env/subscribe?from=start',
      lastId === undefined ? {} : { lastId },
    ).catch(() => null)
    if (!stream) continue
    const close = () => stream.close()
    over.addEventListener('abort', close, { once: true })
    seen.push(...(await stream.rest().catch(() => [...stream.seen])))
    over.removeEventListener('abort', close)
  }
  return seen
}

const run = async (cluster: Cluster): Promise<void> => {
  const api = openApi(cluster.url, openSecrets(readConfig(cluster.env)).apiKey)
  await deploy(api, 'work', { 'jobs.js': WORK, 'ticks.js': TICKS })
  const over = new AbortController()
  const told = new AbortController()
  const following = followAlways(api, told.signal)
  const publishing = Array.from({ length: 4 }, () => publisher(cluster, api, over.signal))
  const begun = Date.now()
  for (const role of ['worker', 'projector', 'saga', 'api'] as const satisfies Role[]) {
    await delay(1500) // some load in between
    await cluster.kill(role)
    await cluster.add(role)
  }
  over.abort()
  const acknowledged = (await Promise.all(publishing)).flat()
  assert.ok(acknowledged.length > 50, `${acknowledged.length} events`)

  const events = await allOf<Event>(api, '/events?event_type=work')
  const stored = new Set(events.map(({ event_id }) => event_id))
  assert.equal(
    acknowledged.filter(({ event_id }) => !stored.has(event_id)),
    [],
  )
  const runs = await until(
    async () => {
      const found = Map.groupBy(await allOf<Run>(api, '/runs?type=event'), ({ event_id }) => event_id)
      for (const { event_id } of events) isExact(found.get(event_id) ?? [])
      return [...found.values()].flat()
    },
    { timeoutMs: 40_000, everyMs: 300 },
  )
  assert.ok(runs.some(isLost), 'no run was lost: the worker was killed at rest')

  const ticks = await until(
    async () => {
      const found = await allOf<Run>(api, '/runs?type=schedule')
      return found.some(({ status }) => status === 'succeeded') ? found : undefined
    },
    { timeoutMs: Math.max(1000, 65_000 - (Date.now() - begun)), everyMs: 500 },
  )
  const at = ticks.map(({ result }) => result)
  assert.is(new Set(at).size, at.length, `a tick fired twice: ${JSON.stringify(at)}`)

  await until(async () => (await allOf<Run>(api, '/runs?status=running')).length === 0)
  const last = await publish(api, 'last')
  let seen: readonly Sent[] = []
  setTimeout(() => told.abort(), 2000)
  seen = await following
  assert.ok(seen.some(({ data }) => data['event_id'] === last.event_id))
  const created = seen.flatMap(({ event, data }) =>
    event === 'event:created' ? [String(data['event_id'])] : [],
  )
  assert.is(new Set(created).size, created.length, 'an event came twice')
  const missing = [...stored].filter((event_id) => !created.includes(event_id))
  assert.equal(missing, [])
  assert.equal(
    seen.map(({ id }) => id),
    seen.map(({ id }) => id).toSorted(),
  )
}

if (engineUrl('mongodb') === null || engineUrl('s3') === null) {
  process.stdout.write('The cluster was not tested: it needs SVC_TEST_MONGODB and SVC_TEST_S3\n')
} else {
  const chaos = suite('two nodes of each role, each killed once under load', { timeoutMs: 300_000 })
  chaos(
    'lose nothing, start each handler once, fire each tick once, and report everything once',
    async () => {
      const standIn = engineUrl('eventStore') === null ? await startStandIn() : null
      if (standIn) {
        reportExercised('EventStoreDB stand-in')
        process.env['SVC_TEST_STAND_IN'] = standIn.url
      }
      engineUrl('redis')
      const cluster = await startCluster()
      try {
        await run(cluster)
      } finally {
        await cluster.stop()
        await standIn?.stop()
      }
    },
  )
  chaos.run()
}
