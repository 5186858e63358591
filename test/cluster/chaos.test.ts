import { spawnSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import type { Role } from '../../src/process/config.ts'
import { follow, type Follower, type Sent } from '../api/sse.ts'
import { deploy, type Event, publish, type Run } from '../support/build.ts'
import type { Cluster } from '../support/cluster.ts'
import { allOf, isExact, isLost, WORK } from '../support/exactRuns.ts'
import type { Api } from '../support/http.ts'
import { hasClusterEngines, openCluster, type OpenCluster } from '../support/openCluster.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
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

const below = randomOf(SEED)
const TICKS = `
import { fn } from 'svc'
export const minutely = fn({ schedule: '* * * * *' }, tick => tick.data.scheduled_time)
`

/** Publishes until `over`. Adds to `acknowledged` every event whose publication succeeded. */
const publisher = async (cluster: Cluster, api: Api, acknowledged: Event[], over: AbortSignal) => {
  while (!over.aborted) {
    try {
      acknowledged.push(await publish(api, 'work', below(300)))
      await delay(100) // a read-model server that scans must keep up
    } catch {
      await until(() => cluster.nodes('api').length > 0) // an event without an acknowledgement may be stored or not
    }
  }
}

/** Follows the environment until `over`. Like an EventSource, it reconnects with the last id when the stream ends. */
const followAlways = (api: Api, over: AbortSignal) => {
  const earlier: Sent[] = []
  let current: Follower | undefined
  const keepFollowing = async () => {
    while (!over.aborted) {
      const lastId = earlier.at(-1)?.id
      const from = '/env/subscribe?from=start'
      const stream = await follow(api, from, lastId === undefined ? {} : { lastId }).catch(() => null)
      if (!stream) continue
      current = stream
      const close = () => stream.close()
      over.addEventListener('abort', close, { once: true })
      if (over.aborted) close()
      await stream.rest().catch(() => {}) // an interrupted reply ends like a complete one
      over.removeEventListener('abort', close)
      earlier.push(...stream.seen)
      current = undefined
    }
  }
  return { seen: () => [...earlier, ...(current?.seen ?? [])], ended: keepFollowing() }
}

/** Events that are published between two kills. */
const LOAD = 25

const run = async ({ cluster, api }: OpenCluster): Promise<void> => {
  await deploy(api, 'work', { 'jobs.js': WORK, 'ticks.js': TICKS })
  const over = new AbortController()
  const leaving = new AbortController()
  const following = followAlways(api, leaving.signal)
  const acknowledged: Event[] = []
  const publishing = Array.from({ length: 4 }, () => publisher(cluster, api, acknowledged, over.signal))
  for (const role of ['worker', 'projector', 'saga', 'api'] as const satisfies Role[]) {
    const enough = acknowledged.length + LOAD
    await until(() => acknowledged.length >= enough, { timeoutMs: 30_000 })
    await cluster.kill(role)
    await cluster.add(role)
  }
  over.abort()
  await Promise.all(publishing)
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
    { timeoutMs: 65_000, everyMs: 500 },
  )
  const at = ticks.map(({ result }) => result)
  assert.is(new Set(at).size, at.length, `a tick fired twice: ${JSON.stringify(at)}`)

  await until(async () => (await allOf<Run>(api, '/runs?status=running')).length === 0)
  const last = await publish(api, 'last')
  await until(() => following.seen().some(({ data }) => data['event_id'] === last.event_id), {
    timeoutMs: 20_000,
    everyMs: 100,
  })
  leaving.abort()
  await following.ended
  const seen = following.seen()
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

if (!hasClusterEngines()) {
  process.stdout.write('The cluster was not tested: it needs SVC_TEST_MONGODB and SVC_TEST_S3\n')
} else {
  const chaos = suite(`two nodes of each role, each killed once under load (SVC_TEST_SEED=${SEED})`, {
    timeoutMs: 300_000,
  })
  chaos(
    'lose nothing, start each handler once, fire each tick once, and report everything once',
    async () => {
      const opened = await openCluster()
      try {
        await run(opened)
      } finally {
        await opened.stop()
      }
    },
  )
  chaos.run()
}
